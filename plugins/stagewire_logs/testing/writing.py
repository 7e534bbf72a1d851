"""Events with times, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stagewire_logs.times import from_epoch

Event = dict[str, Any]
"""The fields of one line, in the order in which stagewire writes them."""

START = 1_795_000_000.0
"""When made logs begin: in November 2026."""


class Stopwatch:
    """A clock that goes as it is told.

    Args:
        start: Seconds since 1970.
    """

    def __init__(self, start: float = START) -> None:
        self.now = start

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def event(self, level: str, event: str, pipeline: str, **fields: Any) -> Event:
        """Return an event that happens now."""
        return {"timestamp": from_epoch(self.now), "level": level, "event": event, "pipeline": pipeline, **fields}


def encode(events: Iterable[Event]) -> Iterator[bytes]:
    """Yield events as lines, each with its newline."""
    for event in events:
        yield msgspec.json.encode(event) + b"\n"
