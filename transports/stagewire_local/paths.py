"""One direction of one edge: its streams, its counters, and the wake-ups of its readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from stagewire import ChunkLink, StageId, describe, emit
from stagewire_local.counters import Counters
from stagewire_local.runs import Stream

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

WakeUp = Callable[..., None]

MakeLog = Callable[[], "FilteringBoundLogger"]
"""Returns the logger; asked only when there is something to report."""

Place = tuple[str, StageId]
"""One request of one stage; stages may share a link."""


class Path:
    """What equal links share, whatever their role. ``streams`` belongs to the store's lock, the rest to no lock."""

    def __init__(self, link: ChunkLink, counters: Counters, log: MakeLog) -> None:
        self.edge = link.edge
        self.counters = counters
        self.streams: dict[Place, Stream] = {}
        self.hints: dict[object, WakeUp] = {}
        self._stages: set[StageId] = {link.source}
        self._log = log

    def add(self, place: Place, stream: Stream) -> None:
        self.streams[place] = stream
        self._stages.add(place[1])

    def of_request(self, request: str) -> Iterator[tuple[Place, Stream]]:
        """Yield what one request has here."""
        for stage in self._stages:
            stream = self.streams.get((request, stage))
            if stream is not None:
                yield (request, stage), stream

    def set_hint(self, owner: object, callback: WakeUp | None) -> None:
        """Give or take away the wake-up of one reader; the dict is replaced, so a put in another thread may go on."""
        others = {key: value for key, value in self.hints.items() if key is not owner}
        self.hints = others if callback is None else {**others, owner: callback}

    def wake(self, requests: Iterable[str]) -> None:
        """Call the wake-ups, naming the requests that something was put for.

        One that raises is reported and harms neither the put nor the others.
        """
        for callback in self.hints.values():
            try:
                callback(*requests)
            except Exception as error:  # noqa: BLE001 — the put is done; a reader's fault is not the writer's
                emit(self._log(), "transport.wakeup_failed", edge=self.edge, cause=describe(error))
