"""What the workers of one orchestrator share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from stagewire_orchestrator.door import Door
from stagewire_orchestrator.ledger import RequestState
from stagewire_orchestrator.options import Limits
from stagewire_orchestrator.outbox import Outbox
from stagewire_orchestrator.ready import ReadyQueue
from stagewire_orchestrator.replicas import Replica
from stagewire_orchestrator.reports import Reports
from stagewire_orchestrator.submitter import Submitter

Spawn = Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
"""Starts a task that shutdown cancels and awaits."""


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """One orchestrator's tables and queues.

    Attributes:
        limits: The bounds.
        spawn: Starts further tasks.
        door: Admission.
        ready: The dispatcher's queue.
        outbox: Outputs on their way to the client.
        reports: Events and counters.
        ledger: The requests that have not ended, by wire id (OR-4).
        submitters: The worker of each replica that submits to it.
    """

    limits: Limits
    spawn: Spawn
    door: Door
    ready: ReadyQueue
    outbox: Outbox
    reports: Reports
    ledger: dict[str, RequestState] = field(default_factory=dict)
    submitters: dict[Replica, Submitter] = field(default_factory=dict)
