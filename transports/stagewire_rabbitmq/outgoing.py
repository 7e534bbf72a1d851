"""What this process sends on one link: a token for each run, and a window of how much of it may be unread (TR-5).

A chunk is in the window from its put until the consumer grants that it is gone. Grants are cumulative, so a lost one is
made good by the next; when a closed window hears nothing for a while, a *mark* goes down the edge behind the chunks and
asks what of them is still there.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stagewire import ChunkKey, ChunkMessage, Clock, Permanent, TransportFull
from stagewire_rabbitmq.runs import GONE, Name

REMEMBERED = 65_536
SMALL = 4_096
"""The message of a run of one chunk is remembered, to know a repeat of it, if it has at most so many bytes."""

SILENCE = 1.0
"""Seconds without news after which a closed window asks."""


@dataclass(frozen=True, slots=True)
class Window:
    """How much of one request may be unread on one edge. A chunk that is larger than ``bytes`` travels alone."""

    chunks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Sent:
    """One chunk that was admitted, to be settled once its fate is known."""

    key: ChunkKey
    run: int
    finished: bool
    size: int


class _Run:
    __slots__ = ("base", "bytes", "confirmed", "ended", "last", "news_at", "sizes", "token")

    def __init__(self, token: int, now: float) -> None:
        self.token = token
        self.base = 0
        self.bytes = 0
        self.confirmed = -1
        self.ended = False
        self.last: ChunkMessage | None = None
        self.sizes: dict[int, int] = {}
        self.news_at = now

    def begins_anew(self, chunk: int, message: ChunkMessage) -> bool:
        return self.ended and chunk == 0 and message is not self.last

    def is_full(self, chunk: int, size: int, window: Window) -> bool:
        if not self.sizes or chunk < self.base or chunk in self.sizes:
            return False
        return len(self.sizes) >= window.chunks or self.bytes + size > window.bytes

    def add(self, chunk: int, size: int) -> None:
        if chunk >= self.base and chunk not in self.sizes:
            self.sizes[chunk] = size
            self.bytes += size

    def remove(self, chunks: Iterable[int]) -> None:
        for chunk in chunks:
            self.bytes -= self.sizes.pop(chunk, 0)

    def grant(self, base: int, now: float) -> bool:
        """Open the window; returns whether that made room."""
        self.news_at = now
        if base <= self.base:
            return False
        self.base = base
        self.remove([chunk for chunk in self.sizes if chunk < base])
        return True


class Outgoing:
    """Admits chunks to their runs. Thread-safe; never waits but for its lock."""

    def __init__(self, edge: str, window: Window, clock: Clock, token: Callable[[], int] | None = None) -> None:
        start = secrets.randbits(42) << 20
        self._edge = edge
        self._window = window
        self._clock = clock
        self._token = token or itertools.count(start).__next__
        self._lock = threading.Lock()
        self._runs: OrderedDict[Name, _Run] = OrderedDict()

    def admit(self, key: ChunkKey, message: ChunkMessage, size: int) -> Sent:
        """Count a chunk into its run; chunk 0 after a whole run begins the next one.

        A run of one chunk is told from a repeat of it by the message object, which is remembered if it is small.

        Raises:
            TransportFull: So much of this request is unread that it has no room now.
        """
        name = (key.stage, key.request)
        with self._lock:
            run = self._runs.get(name)
            if run is None or run.begins_anew(key.chunk, message):
                run = self._runs[name] = _Run(self._token(), self._clock())
                self._forget_old()
            elif run.is_full(key.chunk, size, self._window):
                raise self._full(key, run)
            self._runs.move_to_end(name)
            run.add(key.chunk, size)
            if message["finished"]:
                run.ended, run.last = True, message if key.chunk == 0 else None
            return Sent(key, run.token, message["finished"], size)

    def settle(self, outcomes: Iterable[tuple[Sent, Exception | None]]) -> None:
        """Note what became of chunks: those that were refused leave no trace; those in doubt stay in the window."""
        with self._lock:
            for sent, error in outcomes:
                run = self._runs.get((sent.key.stage, sent.key.request))
                if run is None or run.token != sent.run:
                    continue
                if error is None:
                    self._confirm(run, sent)
                elif isinstance(error, TransportFull | Permanent):
                    run.remove([sent.key.chunk])
                    run.ended = run.ended and not sent.finished

    def grant(self, name: Name, token: int, base: int) -> bool:
        """Note that nothing below ``base`` is unread; returns whether that made room."""
        with self._lock:
            run = self._runs.get(name)
            return run is not None and run.token == token and run.grant(base, self._clock())

    def mark(self, key: ChunkKey) -> tuple[int, int] | None:
        """Return (run, last confirmed chunk) when it is time to ask what of a closed window is still there."""
        with self._lock:
            run = self._runs.get((key.stage, key.request))
            if run is None or run.confirmed < run.base or self._clock() - run.news_at < SILENCE:
                return None
            run.news_at = self._clock()
            return run.token, run.confirmed

    def forget(self, request: str) -> None:
        """Forget a request: its next chunk begins a run."""
        with self._lock:
            for name in [name for name in self._runs if name[1] == request]:
                del self._runs[name]

    def unread(self) -> tuple[int, int]:
        """Return how many chunks, and bytes, are not known to be gone."""
        with self._lock:
            runs = self._runs.values()
            return sum(len(run.sizes) for run in runs), sum(run.bytes for run in runs)

    @staticmethod
    def _confirm(run: _Run, sent: Sent) -> None:
        run.confirmed = max(run.confirmed, sent.key.chunk)
        if sent.finished:
            run.grant(GONE, run.news_at)  # nothing comes after it that could wait for room
            if sent.size > SMALL:
                run.last = None

    def _forget_old(self) -> None:
        if len(self._runs) > REMEMBERED:
            self._runs.popitem(last=False)

    def _full(self, key: ChunkKey, run: _Run) -> TransportFull:
        return TransportFull(
            f"edge {self._edge!r}: {len(run.sizes)} chunks ({run.bytes} bytes) of request {key.request!r} are unread"
            " (options request_chunks and request_bytes): put it again when its reader has caught up"
        )
