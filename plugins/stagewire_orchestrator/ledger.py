"""The ledger: what is known of each request. Only the dispatcher, and the handler when registering, touch it (OR-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stagewire import StageId
from stagewire_orchestrator.graph import Node
from stagewire_orchestrator.outbox import Lane
from stagewire_orchestrator.replicas import Replica


class _Skipped(tuple[Any, ...]):
    """Empty, and like no other empty tuple."""

    __slots__ = ()


SKIPPED: Sequence[Any] = _Skipped()
"""Stands for the outputs of a stage that a route left out; told by identity from a stage that had none."""


@dataclass(slots=True, eq=False)
class StageRun:
    """One request in one stage.

    Attributes:
        node: The stage.
        replica: The replica that takes the request; ``None`` when a route left the stage out.
        collected: What the successors on batch edges will get.
        shares: The same behind a route: what each of them will get.
        ended: Whether the stage has ended for the request.
        outputs: How many outputs with data it has had.
        bytes: What is collected, weighed.
        started_at: When it was marked submitted.
        seconds: How long the stage took, once it has ended.
    """

    node: Node
    replica: Replica | None
    started_at: float
    collected: list[Any] | None = None
    shares: dict[StageId, list[Any]] | None = None
    ended: bool = False
    outputs: int = 0
    bytes: int = 0
    seconds: float | None = None


@dataclass(slots=True, eq=False)
class RequestState:
    """One admitted request, until it ends.

    Attributes:
        id: The id that the client gave.
        wire: The id of this use.
        prompt: What the client gave.
        lane: Its outputs on their way to the client.
        added_at: When ``add_request`` was called.
        finals_left: How many final stages have not ended.
        runs: The stages that were submitted, or left out.
        arrived: For each join, what came so far.
        making: Tasks that make payloads.
        started_at: When the first stage had taken it.
        last_output_at: When the client's last output came.
        timer: The next look at its clocks.
        look: The next look at whether it moves.
        over: Whether it has ended; it is then no longer in the ledger.
    """

    id: str
    wire: str
    prompt: Any
    lane: Lane
    added_at: float
    finals_left: int
    runs: dict[StageId, StageRun] = field(default_factory=dict)
    arrived: dict[StageId, dict[StageId, Sequence[Any]]] | None = None
    making: set[asyncio.Task[None]] | None = None
    started_at: float | None = None
    last_output_at: float | None = None
    timer: asyncio.TimerHandle | None = None
    look: asyncio.TimerHandle | None = None
    over: bool = False

    @property
    def submitted(self) -> set[StageId]:
        """The stages that were submitted."""
        return {stage for stage, run in self.runs.items() if run.replica is not None}

    @property
    def finished(self) -> set[StageId]:
        """The stages that have ended."""
        return {stage for stage, run in self.runs.items() if run.ended}
