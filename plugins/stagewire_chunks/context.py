"""What every part of an adapter is given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from stagewire import Clock, StageId
from stagewire_chunks.options import ChunkOptions
from stagewire_chunks.port import Port
from stagewire_chunks.watch import Watch

Waiter = Callable[[threading.Condition, float], object]
"""Waits on a held condition for at most so many seconds; `threading.Condition.wait`, or a test's own (CH-11)."""


@dataclass(frozen=True, slots=True)
class Context:
    """The stage, its transport, and how to behave."""

    stage: StageId
    port: Port
    options: ChunkOptions
    clock: Clock
    waiter: Waiter
    watch: Watch
