"""The bounds of what may wait to be put (CH-19), and who is waiting for room."""

from __future__ import annotations

from stagewire import TransportFull
from stagewire_chunks.backlog import Backlog
from stagewire_chunks.lanes import Lane
from stagewire_chunks.options import ChunkOptions

_REMEDY = "wait_for_room() waits for it, on_room() tells of it"


class Room:
    """Says whether another chunk fits. Not thread-safe.

    A chunk larger than a bound fits when nothing else counts against that bound: it could never be sent otherwise.
    """

    def __init__(self, options: ChunkOptions, backlog: Backlog) -> None:
        self._chunks, self._bytes = options.queue_chunks, int(options.queue_bytes)
        self._lane_chunks, self._lane_bytes = options.request_chunks, int(options.request_bytes)
        self._backlog = backlog
        self._refused: dict[str, int] = {}  # the size that did not fit

    def __len__(self) -> int:
        """How many requests were refused and have not been told of room since."""
        return len(self._refused)

    def admit(self, request: str, lane: Lane | None, size: int) -> None:
        """Raise `TransportFull` when a chunk of ``size`` bytes does not fit now; names the bound."""
        bound = self._bound(lane, size)
        if bound is not None:
            self._refused[request] = size
            raise TransportFull(f"no room for another chunk of request {request!r}: {bound}; {_REMEDY}")

    def has_room(self, request: str) -> bool:
        """Return whether the chunk fits now that was refused last; a small one where none was."""
        return self._bound(self._backlog.lanes.get(request), self._refused.get(request, 0)) is None

    def take_freed(self) -> list[str]:
        """Return the requests that were refused and have room again, each once."""
        freed = [request for request in self._refused if self.has_room(request)]
        for request in freed:
            del self._refused[request]
        return freed

    def forget(self, request: str) -> None:
        """Tell the request no more: it was cancelled."""
        self._refused.pop(request, None)

    def clear(self) -> None:
        """Forget who was refused."""
        self._refused.clear()

    def _bound(self, lane: Lane | None, size: int) -> str | None:
        chunks, held = self._backlog.chunks, self._backlog.bytes
        if chunks >= self._chunks:
            return f"{chunks} chunks wait to be put (queue_chunks)"
        if held + size > self._bytes and held:
            return f"{held} bytes wait to be put (queue_bytes is {self._bytes})"
        if lane is None:
            return None
        if lane.chunks >= self._lane_chunks:
            return f"{lane.chunks} chunks of it wait to be put (request_chunks)"
        if lane.bytes + size > self._lane_bytes and lane.bytes:
            return f"{lane.bytes} bytes of it wait to be put (request_bytes is {self._lane_bytes})"
        return None
