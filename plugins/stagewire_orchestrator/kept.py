"""The sending end of a chunk edge whose receiver may be replaced: it keeps what that may ask for again (OR-15)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from stagewire import RequestFailed, Transport
from stagewire.codec import weigh
from stagewire_orchestrator.edges import Edge
from stagewire_orchestrator.links import OutEnd
from stagewire_orchestrator.outputs import Mark

KEPT_BYTES = 16 * 1024 * 1024
"""Bytes that are kept of one request on one edge; of a request with more the oldest go, and it cannot be resumed."""


class _Kept:
    """The chunks of one request, from number ``base`` on; those before ``cursor`` were sent under ``name``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.base = 0
        self.cursor = 0
        self.finished = False
        self.ended: str | None = None
        self.sending = asyncio.Lock()
        self.parcels: deque[tuple[Any, int]] = deque()
        self.bytes = 0

    @property
    def end(self) -> int:
        return self.base + len(self.parcels)

    def add(self, parcel: Any) -> None:
        size = weigh(parcel)
        self.parcels.append((parcel, size))
        self.bytes += size

    def retire(self, upto: int) -> None:
        while self.parcels and self.base < min(upto, self.cursor):
            self.bytes -= self.parcels.popleft()[1]
            self.base += 1

    def trim(self) -> None:
        while self.bytes > KEPT_BYTES and self.base < self.cursor:
            self.retire(self.base + 1)


class KeptEnd(OutEnd):
    """An `OutEnd` that can send a request again from any chunk on that was not retired.

    Keeping is bounded by `KEPT_BYTES` for each request and never holds a stage back.
    """

    def __init__(self, edge: Edge, replica: int, transport: Transport, **options: Any) -> None:
        super().__init__(edge, replica, transport, **options)
        self._table: dict[str, _Kept] = {}

    def stats(self) -> dict[str, float]:
        """Return the adapter's tables and counts, and what is kept."""
        chunks = sum(len(each.parcels) for each in self._table.values())
        return {**super().stats(), "kept": chunks, "kept_requests": len(self._table)}

    def begin(self, wire: str, edge_wire: str, number: int) -> None:
        """Send a request under another id; its next chunk has this number."""
        self.rename(wire, edge_wire)
        kept = self._table[wire] = _Kept(edge_wire)
        kept.base = kept.cursor = number

    async def send(self, wire: str, chunk: Any, mark: Mark | None = None) -> None:
        """Send a chunk and keep it; waits while the edge has no room for this request."""
        kept = self._of(wire)
        kept.add([chunk] if mark is None else [chunk, *mark])
        await self._pump(kept)

    def finish(self, wire: str) -> None:
        """Say that all was sent; it is kept until it is retired."""
        kept = self._of(wire)
        kept.finished = True
        self._expect(wire)
        self._names.pop(wire, None)
        if not kept.sending.locked():
            self._end(kept)

    def cancel(self, wire: str) -> None:
        """Drop what waits to be sent and what is kept, and tell the receiver."""
        kept = self._table.pop(wire, None)
        name = self._names.pop(wire, wire)
        self._cancel(name if kept is None else kept.name, ending=self._ending.pop(wire, None) is not None)

    def drop(self, wire: str) -> None:
        """Keep nothing of a request any more."""
        self._table.pop(wire, None)

    def retire(self, wire: str, upto: int) -> None:
        """Forget the chunks before number ``upto``; all of a request that has ended when that lies beyond its end."""
        kept = self._table.get(wire)
        if kept is None:
            return
        kept.retire(upto)
        if kept.finished and upto > kept.end:
            del self._table[wire]

    def check(self, wire: str, start: int, *, begun: bool) -> None:
        """Raise `RequestFailed` unless the chunks from number ``start`` on are kept, or are still to come.

        Args:
            wire: The request.
            start: The number of a chunk.
            begun: Whether its stage runs here, so that what is not kept was not sent either.
        """
        kept = self._of(wire) if begun else self._table.get(wire)
        if kept is None or start < kept.base:
            raise RequestFailed(
                wire,
                self.edge.source,
                f"chunk {start} for {self.edge.target!r} is not kept any more (at most {KEPT_BYTES >> 20} MiB are)",
            )

    async def resend(self, wire: str, edge_wire: str, start: int) -> None:
        """Send a request again under another id, from chunk ``start`` on, which `check` found."""
        kept = self._of(wire)
        before, kept.name, kept.cursor = kept.name, edge_wire, min(start, kept.end)
        if not kept.finished:
            self._names[wire] = edge_wire
        room = self._room.get(before)
        if room is not None:
            room.set()
        self._cancel(before)
        await self._pump(kept)

    def _of(self, wire: str) -> _Kept:
        kept = self._table.get(wire)
        if kept is None:
            kept = self._table[wire] = _Kept(self._names.get(wire, wire))
        return kept

    async def _pump(self, kept: _Kept) -> None:
        async with kept.sending:
            while kept.cursor < kept.end:
                name = kept.name
                if self._sent(name, kept.parcels[kept.cursor - kept.base][0]):
                    kept.cursor += 1
                    kept.trim()
                else:
                    await self._room[name].wait()
        if kept.finished and kept.cursor == kept.end:
            self._end(kept)

    def _end(self, kept: _Kept) -> None:
        """Put the terminal, once under each id."""
        if kept.ended != kept.name:
            kept.ended = kept.name
            self._finish(kept.name)
