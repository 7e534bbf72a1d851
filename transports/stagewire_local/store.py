"""The chunks of all edges of one transport, under one lock and one byte budget.

Fairness (TR-4): each request has bounds of its own, and as the budget fills up what one request may hold shrinks to
what is still free, so many silent requests leave room for the next; one that holds nothing may always put one chunk.
The whole is bounded by ``total_bytes`` and one chunk for each of at most ``requests`` requests.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from stagewire import ChunkKey, ChunkMessage, Clock, Closed, Permanent, TransportFull
from stagewire_local.counters import Counters
from stagewire_local.options import LocalOptions
from stagewire_local.runs import Item, Run, Stream, Verdict
from stagewire_local.shelves import Path, Place, Shelves

EXPIRED = "expired"
CLEANED = "cleaned"


class Expiry(NamedTuple):
    """A request whose chunks nobody asked for in time."""

    place: Place
    chunks: int
    bytes: int


class Parcel(NamedTuple):
    """One chunk to be put, weighed."""

    key: ChunkKey
    message: ChunkMessage
    size: int


class ChunkStore:
    """Keeps chunks until they are taken. Any thread may call any method; none waits for anything but the lock."""

    def __init__(self, options: LocalOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        self._shelves = Shelves(options.requests, options.remembered)
        self._used = 0
        self._closed = False
        self._counters: dict[str, Counters] = {}
        self._expiries: list[Expiry] = []

    def put(self, path: Path, parcels: Sequence[Parcel]) -> list[Exception | None]:
        """Put each parcel by itself, in order; one's refusal touches no other (TR-9)."""
        with self._lock:
            now = self._tick()
            counters = self.counters(path.edge)
            return [self._try(path, parcel, now, counters) for parcel in parcels]

    def get(self, path: Path, key: ChunkKey) -> ChunkMessage | None:
        """Take one chunk out."""
        with self._lock:
            now = self._tick()
            stream = self._shelves.find(path, key)
            if stream is None or stream.gone is not None:
                return None
            item = stream.take(key.chunk)
            self._shelves.file(Place(path, key.request, key.stage), stream, now)
            if item is None:
                return None
            self._used -= item.size
            counters = self.counters(path.edge)
            counters.gets += 1
            counters.wait_seconds += now - item.put_at
            return item.message

    def cleanup(self, path: Path, request: str) -> None:
        """Drop what the request has on the path, and what is still to come of a run that is being put."""
        with self._lock:
            now = self._tick()
            for place, stream in self._shelves.of_request(path, request):
                self.counters(path.edge).dropped += stream.count
                self._give_up(place, stream, CLEANED, now)

    def counters(self, edge: str) -> Counters:
        """Return the counters of an edge, made on first use."""
        return self._counters.get(edge) or self._counters.setdefault(edge, Counters())

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the counters per edge, with what is in store now, or was when it was closed."""
        with self._lock:
            return self._snapshot()

    def close(self) -> dict[str, dict[str, float]]:
        """Drop everything; returns the counters, with what nobody read."""
        with self._lock:
            stats = self._snapshot()
            self._closed = True
            self._shelves = Shelves(self._options.requests, self._options.remembered)
            self._used = 0
            return stats

    def take_expiries(self) -> list[Expiry]:
        """Return what expired since the last call, to be reported without the lock."""
        if not self._expiries:
            return []
        with self._lock:
            expiries, self._expiries = self._expiries, []
            return expiries

    def _snapshot(self) -> dict[str, dict[str, float]]:
        if not self._closed:
            self._count_unread()
        return {edge: counters.snapshot() for edge, counters in self._counters.items()}

    def _count_unread(self) -> None:
        for counters in self._counters.values():
            counters.unread = counters.unread_bytes = 0
        for place, stream in self._shelves.full.items():
            counters = self._counters[place.path.edge]
            counters.unread += stream.count
            counters.unread_bytes += stream.bytes

    def _tick(self) -> float:
        if self._closed:
            raise Closed("the transport was closed")
        now = self._clock()
        for place, stream in self._shelves.stale(now - self._options.expires):
            if stream.count:
                self._expiries.append(Expiry(place, stream.count, stream.bytes))
                self.counters(place.path.edge).expired += stream.count
                self._give_up(place, stream, EXPIRED, now)
            else:
                self._shelves.forget(place)
        return now

    def _give_up(self, place: Place, stream: Stream, reason: str, now: float) -> None:
        self._used -= stream.bytes
        stream.give_up(reason)
        self._shelves.file(place, stream, now)

    def _try(self, path: Path, parcel: Parcel, now: float, counters: Counters) -> Exception | None:
        try:
            self._put(path, parcel, now, counters)
        except TransportFull as error:
            counters.full += 1
            return error
        except Permanent as error:
            return error
        return None

    def _put(self, path: Path, parcel: Parcel, now: float, counters: Counters) -> None:
        key, message, size = parcel
        stream = self._shelves.find(path, key)
        place = Place(path, key.request, key.stage)
        verdict = Verdict.STORED if stream is None else stream.judge(key.chunk, message)
        if stream is not None and verdict is Verdict.UNWANTED:
            self._refuse(place, stream, parcel, counters, now)
        elif verdict is Verdict.REPEAT:
            counters.duplicates += 1
        else:
            self._admit(place, stream, parcel)
            self._store(place, stream, parcel, now)
            counters.puts += 1
            counters.bytes += size

    def _store(self, place: Place, stream: Stream | None, parcel: Parcel, now: float) -> None:
        chunk = parcel.key.chunk
        if stream is None:
            # A chunk this far in belongs to a run whose beginning was taken and forgotten: go on from there.
            stream = Stream(Run(chunk if chunk >= self._options.request_chunks else 0))
        stream.store(chunk, Item(parcel.message, parcel.size, now))
        self._used += parcel.size
        self._shelves.file(place, stream, now)

    def _refuse(self, place: Place, stream: Stream, parcel: Parcel, counters: Counters, now: float) -> None:
        """Drop the rest of a run that was given up; say so when it was not the reader who did it."""
        expired = stream.gone == EXPIRED
        stream.note_unwanted(parcel.key.chunk, parcel.message)
        self._shelves.file(place, stream, now)
        counters.dropped += 1
        if expired:
            raise Permanent(
                f"request {place.request!r} expired on edge {place.path.edge!r}: nobody asked for its chunks within"
                f" {self._options.expires:g} s; raise the transport's option expires, or see why the reader stopped"
            )

    def _admit(self, place: Place, stream: Stream | None, parcel: Parcel) -> None:
        options, size = self._options, parcel.size
        if size > options.total_bytes:
            raise Permanent(
                f"a chunk of {size} bytes is larger than the transport's total_bytes ({int(options.total_bytes)}):"
                " raise the option or put smaller chunks"
            )
        if stream is not None and max(stream.count, stream.reach(parcel.key.chunk)) >= options.request_chunks:
            raise _full(place, stream, f"request_chunks is {options.request_chunks}")
        if stream is None or not stream.count:
            self._admit_request()
            return
        room = min(int(options.request_bytes), options.total_bytes - self._used)
        if stream.bytes + size > room:
            raise _full(place, stream, f"it may hold {room} bytes now (request_bytes, and what is free of total_bytes)")

    def _admit_request(self) -> None:
        if len(self._shelves.full) >= self._options.requests:
            raise TransportFull(
                f"{self._options.requests} requests have unread chunks (the transport's option requests)"
            )


def _full(place: Place, stream: Stream, limit: str) -> TransportFull:
    return TransportFull(
        f"request {place.request!r} has {stream.count} unread chunks of {stream.bytes} bytes on edge"
        f" {place.path.edge!r}, and {limit}: put it again when the reader has caught up"
    )
