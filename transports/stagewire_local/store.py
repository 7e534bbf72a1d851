"""The chunks of all edges of one transport, under one lock and one byte budget.

Fairness (TR-4): each request has bounds of its own, and as the budget fills up what one request may hold shrinks to
what is still free, so many silent requests leave room for the next; one that holds nothing may always put one chunk.
The whole is bounded by ``total_bytes`` and one chunk for each of at most ``requests`` requests.

Expiry (TR-6) is lazy: a stream that is touched after its time has expired, and from time to time whoever comes sweeps
all of them. No task or thread is needed.
"""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from stagewire import (
    ChunkKey,
    ChunkLink,
    ChunkMessage,
    Clock,
    Closed,
    Permanent,
    StageId,
    TransportError,
    TransportFull,
)
from stagewire.codec import weigh
from stagewire_local.counters import Counters
from stagewire_local.options import LocalOptions
from stagewire_local.paths import MakeLog, Path, Place
from stagewire_local.runs import Item, Stream, Verdict

EXPIRED = "expired"
CLEANED = "cleaned"

SWEEPS = 8
"""Sweeps within the time after which something expires: how late, as a fraction, memory may be freed."""

_Identity = tuple[str, StageId, StageId, int]


class Expiry(NamedTuple):
    """A request whose chunks nobody asked for in time."""

    edge: str
    request: str
    chunks: int
    bytes: int


class ChunkStore:
    """Keeps chunks until they are taken. Any thread may call any method; none waits for anything but the lock."""

    def __init__(
        self, options: LocalOptions, clock: Clock, log: MakeLog, on_expiry: Callable[[Expiry], object]
    ) -> None:
        self._options = options
        self._max_chunks = options.request_chunks
        self._request_bytes = int(options.request_bytes)
        self._total_bytes = int(options.total_bytes)
        self._expires = options.expires
        self._clock = clock
        self._log = log
        self._on_expiry = on_expiry
        self._lock = threading.Lock()
        self._paths: dict[_Identity, Path] = {}
        self._counters: dict[str, Counters] = {}
        self._past: OrderedDict[tuple[int, Place], Path] = OrderedDict()
        self._streams = 0
        self._used = 0
        self._expiries: list[Expiry] = []
        self._sweep_at = clock() + self._expires / SWEEPS
        self._closed = False

    def path(self, link: ChunkLink) -> Path:
        """Return the path of a link, made on first use."""
        identity = (link.edge, link.source, link.target, link.replica)
        with self._lock:
            path = self._paths.get(identity)
            if path is None:
                counters = self._counters.setdefault(link.edge, Counters())
                path = self._paths[identity] = Path(link, counters, self._log)
            return path

    def put(self, path: Path, key: ChunkKey, message: ChunkMessage) -> None:
        """Keep one chunk, or raise why not."""
        size = weigh(message["data"])
        try:
            with self._lock:
                self._put(path, key, (message, size, self._enter()))
        finally:
            if self._expiries:
                self._report()

    def put_many(self, path: Path, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        """Keep several chunks; returns why not for those that were refused.

        Once one of a request was refused its later ones are, too: they would only overtake it.
        """
        sizes = [weigh(message["data"]) for _, message in items]
        results: list[Exception | None] = []
        refused: dict[str, Exception] = {}
        try:
            with self._lock:
                now = self._enter()
                for (key, message), size in zip(items, sizes, strict=True):
                    error = refused.get(key.request) if refused else None
                    if error is None:
                        try:
                            self._put(path, key, (message, size, now))
                        except TransportError as raised:
                            error = refused[key.request] = raised
                    results.append(error)
        finally:
            if self._expiries:
                self._report()
        return results

    def get(self, path: Path, key: ChunkKey) -> ChunkMessage | None:
        """Take one chunk out."""
        try:
            with self._lock:
                now = self._enter()
                place = (key.request, key.stage)
                stream = self._visit(path, place, now)
                item = None if stream is None else stream.take(key.chunk)
                if stream is None or item is None:
                    return None
                self._hand_out(path, place, stream, (item,), now)
                return item[0]
        finally:
            if self._expiries:
                self._report()

    def get_many(self, path: Path, key: ChunkKey, limit: int) -> list[ChunkMessage]:
        """Take one chunk and those right after it out, at most ``limit`` and not past the end of the run."""
        place = (key.request, key.stage)
        if place not in path.streams and self._clock() < self._sweep_at:
            return []  # most of the polls of a silent request; what is put at this very moment the next one finds
        try:
            with self._lock:
                now = self._enter()
                stream = self._visit(path, place, now)
                items = [] if stream is None else stream.take_many(key.chunk, limit)
                if stream is not None and items:
                    self._hand_out(path, place, stream, items, now)
                return [message for message, _, _ in items]
        finally:
            if self._expiries:
                self._report()

    def cleanup(self, path: Path, request: str) -> None:
        """Drop what the request has on the path, and what is still to come of a run that is being put."""
        try:
            with self._lock:
                self._enter()
                for place, stream in path.of_request(request):
                    path.counters.dropped += stream.count
                    self._give_up(path, place, stream, CLEANED)
        finally:
            if self._expiries:
                self._report()

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the counters per edge, with what is in store now, or was when it was closed."""
        with self._lock:
            return self._snapshot()

    def close(self) -> dict[str, dict[str, float]]:
        """Drop everything; returns the counters, with what nobody read."""
        with self._lock:
            stats = self._snapshot()
            self._closed = True
            self._sweep_at = float("-inf")
            for path in self._paths.values():
                path.streams.clear()
                path.hints = {}
            self._past.clear()
            return stats

    def _enter(self) -> float:
        now = self._clock()
        if now >= self._sweep_at:
            self._sweep(now)
        return now

    def _visit(self, path: Path, place: Place, now: float) -> Stream | None:
        """Return the stream that a reader asks for, and note that it has one."""
        stream = path.streams.get(place)
        if stream is None or (now - stream.seen_at >= self._expires and self._expire(path, place, stream)):
            return None
        stream.seen_at = now
        return stream

    def _put(self, path: Path, key: ChunkKey, item: Item) -> None:
        place = (key.request, key.stage)
        _, size, put_at = item
        stream = path.streams.get(place)
        if not (
            stream is not None
            and put_at - stream.seen_at < self._expires
            and self._used + stream.bytes + size <= self._total_bytes
            and stream.goes_on(key.chunk, item, self._max_chunks, self._request_bytes)
        ) and not self._put_judged(path, place, key.chunk, item):
            return
        self._used += size
        counters = path.counters
        counters.puts += 1
        counters.bytes += size

    def _put_judged(self, path: Path, place: Place, chunk: int, item: Item) -> bool:
        """Put a chunk that has to be looked at closely; returns whether it was kept, not dropped."""
        message, size, put_at = item
        stream = self._find(path, place, chunk, put_at)
        verdict = stream.judge(chunk, message)
        if verdict is Verdict.NEW:
            self._admit(path, place, stream, chunk, size)
            if not stream.count:
                self._enlist(path, place, stream)
            stream.store(chunk, item)
            return True
        if verdict is Verdict.REPEAT:
            path.counters.duplicates += 1
        else:
            self._refuse(path, place, stream, chunk, message)
        return False

    def _find(self, path: Path, place: Place, chunk: int, now: float) -> Stream:
        """Return the stream of a request, a new one if there is none or it was silent for too long and expires now."""
        stream = path.streams.get(place)
        if stream is not None and now - stream.seen_at >= self._expires and self._expire(path, place, stream):
            stream = path.streams.get(place)
        # A chunk that is far in belongs to a run whose beginning was taken and forgotten: it goes on from there.
        return stream or Stream(chunk if chunk >= self._max_chunks else 0, now)

    def _admit(self, path: Path, place: Place, stream: Stream, chunk: int, size: int) -> None:
        """Raise when there is no room for a chunk, or never will be."""
        if size > self._total_bytes:
            raise Permanent(
                f"a chunk of {size} bytes is larger than the transport's total_bytes ({self._total_bytes}): raise the"
                " option or put smaller chunks"
            )
        if stream.count >= self._max_chunks or stream.gap(chunk) >= self._max_chunks:
            raise self._full(path, place, stream, f"request_chunks is {self._max_chunks}")
        allowed = min(self._request_bytes, self._total_bytes - self._used)
        if stream.count and stream.bytes + size > allowed:
            raise self._full(path, place, stream, f"request_bytes and what is free of total_bytes allow no {size} more")

    def _enlist(self, path: Path, place: Place, stream: Stream) -> None:
        """Make sure that a stream which is about to hold something is among the live ones."""
        if path.streams.get(place) is stream and not stream.ended:
            return
        if self._streams >= self._options.requests and not self._forget_idle():
            path.counters.full += 1
            raise TransportFull(f"{self._streams} requests have unread chunks (the transport's option requests)")
        self._past.pop((id(path), place), None)
        path.add(place, stream)
        self._streams += 1

    def _hand_out(self, path: Path, place: Place, stream: Stream, items: Sequence[Item], now: float) -> None:
        counters, waited = path.counters, 0.0
        for _, size, put_at in items:
            self._used -= size
            waited += now - put_at
        counters.wait_seconds += waited
        counters.gets += len(items)
        if not stream.count and stream.ended:
            self._remember(path, place)

    def _remember(self, path: Path, place: Place) -> None:
        """Count a stream that has just ended among those of the past, and forget the oldest of these."""
        self._streams -= 1
        self._past[id(path), place] = path
        while len(self._past) > self._options.remembered:
            (_, old), its_path = self._past.popitem(last=False)
            del its_path.streams[old]

    def _refuse(self, path: Path, place: Place, stream: Stream, chunk: int, message: ChunkMessage) -> None:
        """Drop the rest of a run that was given up; say so when it was not the reader who did it."""
        expired = stream.gone == EXPIRED
        stream.note_unwanted(chunk, message)
        path.counters.dropped += 1
        if expired:
            raise Permanent(
                f"request {place[0]!r} expired on edge {path.edge!r}: nobody asked for its chunks within"
                f" {self._expires:g} s; raise the transport's option expires, or see why the reader stopped"
            )

    def _give_up(self, path: Path, place: Place, stream: Stream, reason: str) -> None:
        if stream.ended:
            return
        self._used -= stream.bytes
        stream.give_up(reason)
        self._remember(path, place)

    def _expire(self, path: Path, place: Place, stream: Stream) -> bool:
        """End a stream whose time is over; returns whether it had anything to lose. Ended ones are only remembered."""
        if stream.ended:
            return False
        if stream.count:
            self._expiries.append(Expiry(path.edge, place[0], stream.count, stream.bytes))
            path.counters.expired += stream.count
            self._give_up(path, place, stream, EXPIRED)
        else:
            self._forget(path, place)
        return True

    def _forget(self, path: Path, place: Place) -> None:
        del path.streams[place]
        self._streams -= 1

    def _sweep(self, now: float) -> None:
        if self._closed:
            raise Closed("the transport was closed")
        self._sweep_at = now + self._expires / SWEEPS
        for path in self._paths.values():
            stale = [entry for entry in path.streams.items() if now - entry[1].seen_at >= self._expires]
            for place, stream in stale:
                self._expire(path, place, stream)

    def _forget_idle(self) -> bool:
        """Forget an eighth of the streams that hold nothing, the oldest ones; returns whether there were any."""
        idle = [
            (stream.seen_at, id(path), place, path)
            for path in self._paths.values()
            for place, stream in path.streams.items()
            if not (stream.count or stream.ended)
        ]
        for *_, place, path in heapq.nsmallest(max(1, len(idle) // 8), idle, key=lambda entry: entry[0]):
            self._forget(path, place)
        return bool(idle)

    def _full(self, path: Path, place: Place, stream: Stream, limit: str) -> TransportFull:
        path.counters.full += 1
        return TransportFull(
            f"request {place[0]!r} has {stream.count} unread chunks of {stream.bytes} bytes on edge {path.edge!r},"
            f" and {limit}: put it again when the reader has caught up"
        )

    def _report(self) -> None:
        with self._lock:
            expiries, self._expiries = self._expiries, []
        for expiry in expiries:
            self._on_expiry(expiry)

    def _snapshot(self) -> dict[str, dict[str, float]]:
        if not self._closed:
            self._count_unread()
        return {edge: counters.snapshot() for edge, counters in self._counters.items()}

    def _count_unread(self) -> None:
        for counters in self._counters.values():
            counters.unread = counters.unread_bytes = 0
        for path in self._paths.values():
            for stream in path.streams.values():
                path.counters.unread += stream.count
                path.counters.unread_bytes += stream.bytes
