"""The bounds of what may wait to be put (CH-19), and who is waiting for room."""

from __future__ import annotations

from stagewire import TransportFull
from stagewire_chunks.backlog import Backlog
from stagewire_chunks.options import ChunkOptions

_REMEDY = "wait_for_room() waits for it, on_room() tells of it"


class Room:
    """Says whether another chunk fits. Not thread-safe.

    A chunk larger than a bound fits when nothing else counts against that bound: it could never be sent otherwise.
    """

    def __init__(self, options: ChunkOptions, backlog: Backlog) -> None:
        self._options = options
        self._backlog = backlog
        self._refused: dict[str, None] = {}

    def __len__(self) -> int:
        """How many requests were refused and have not been told of room since."""
        return len(self._refused)

    def admit(self, request: str, size: int) -> None:
        """Raise `TransportFull` when a chunk of ``size`` bytes does not fit now; names the bound."""
        bound = self._bound(request, size)
        if bound is not None:
            self._refused[request] = None
            raise TransportFull(f"no room for another chunk of request {request!r}: {bound}; {_REMEDY}")

    def has_room(self, request: str) -> bool:
        """Return whether a small chunk of the request fits now."""
        return self._bound(request, 0) is None

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

    def _bound(self, request: str, size: int) -> str | None:
        options, backlog = self._options, self._backlog
        if backlog.chunks >= options.queue_chunks:
            return f"{backlog.chunks} chunks wait to be put (queue_chunks)"
        if backlog.bytes and backlog.bytes + size > options.queue_bytes:
            return f"{backlog.bytes} bytes wait to be put (queue_bytes is {int(options.queue_bytes)})"
        lane = backlog.lanes.get(request)
        if lane is None:
            return None
        if lane.chunks >= options.request_chunks:
            return f"{lane.chunks} chunks of it wait to be put (request_chunks)"
        if lane.bytes and lane.bytes + size > options.request_bytes:
            return f"{lane.bytes} bytes of it wait to be put (request_bytes is {int(options.request_bytes)})"
        return None
