"""What one request has on one edge, as plain data: runs of chunks, each from id 0 to a final one.

A run knows which ids were put and which were taken, so that a repeat is known before and after it was taken. The reader
is always in the oldest run and the writer in the newest, which lets a request id be used again while its last run is
still being read (CH-7).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from stagewire import ChunkMessage, Permanent

SMALL = 4_096
"""Up to this weight the message of a run that has only one is remembered after it was taken, to know a repeat of it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One chunk in store."""

    message: ChunkMessage
    size: int
    put_at: float


class Verdict(Enum):
    """What became of a put."""

    STORED = auto()
    REPEAT = auto()
    UNWANTED = auto()


class Run:
    """The chunks of one run: those in store, and which ones were taken already."""

    __slots__ = ("ahead", "base", "final", "held", "only")

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.ahead: set[int] = set()
        self.held: dict[int, Item] = {}
        self.final: int | None = None
        self.only: ChunkMessage | None = None

    def has(self, chunk: int) -> bool:
        """Whether the chunk was put, be it still here or not."""
        return chunk < self.base or chunk in self.held or chunk in self.ahead

    @property
    def written(self) -> bool:
        """Whether all of it was put."""
        return self.final is not None and self.base + len(self.ahead) + len(self.held) > self.final

    @property
    def taken(self) -> bool:
        """Whether all of it was taken."""
        return self.final is not None and self.base > self.final

    def repeats(self, chunk: int, message: ChunkMessage) -> bool:
        """Whether a put after the end of the run belongs to it: any chunk but the first, or the very same message."""
        if chunk:
            return True
        held = self.held.get(0)
        return message is self.only or (held is not None and held.message is message)

    def add(self, chunk: int, item: Item) -> None:
        self.held[chunk] = item
        if item.message["finished"]:
            self.final = chunk
            self.only = item.message if chunk == 0 and item.size <= SMALL else None

    def take(self, chunk: int) -> Item | None:
        item = self.held.pop(chunk, None)
        if item is None:
            return None
        self.ahead.add(chunk)
        while self.base in self.ahead:
            self.ahead.remove(self.base)
            self.base += 1
        return item


class Stream:
    """The runs of one request on one edge. Not thread-safe: `ChunkStore` holds its lock around every call."""

    __slots__ = ("bytes", "count", "gone", "later", "reading", "seen_at")

    def __init__(self, first: Run) -> None:
        self.reading = first
        self.later: deque[Run] | None = None
        self.count = 0
        self.bytes = 0
        self.seen_at = 0.0
        self.gone: str | None = None

    @property
    def writing(self) -> Run:
        return self.later[-1] if self.later else self.reading

    @property
    def ended(self) -> bool:
        """Whether only the memory of it is left: all was taken, or nobody wants the rest."""
        return self.gone is not None or (self.reading.taken and not self.later)

    def judge(self, chunk: int, message: ChunkMessage) -> Verdict:
        """Say what a put is: to be stored, a repeat, or the rest of a run that was given up.

        Raises:
            Permanent: It lies past the final chunk of its run.
        """
        run = self.writing
        if run.written:
            return Verdict.REPEAT if run.repeats(chunk, message) else Verdict.STORED
        if self.gone is not None:
            return Verdict.STORED if chunk == 0 else Verdict.UNWANTED
        if run.has(chunk):
            return Verdict.REPEAT
        if run.final is not None and chunk > run.final:
            raise Permanent(
                f"chunk {chunk} lies past the final chunk {run.final}: put nothing after a finished message"
            )
        return Verdict.STORED

    def reach(self, chunk: int) -> int:
        """Return how far ahead of the first chunk not yet taken this one lies."""
        run = self.writing
        return chunk if run.written or self.gone is not None else chunk - run.base

    def store(self, chunk: int, item: Item) -> None:
        """Keep a chunk that was judged to be stored."""
        if self.gone is not None:
            self.reading, self.later, self.gone = Run(), None, None
        elif self.writing.written:
            self._begin()
        self.writing.add(chunk, item)
        self.count += 1
        self.bytes += item.size

    def _begin(self) -> None:
        if self.reading.taken:
            self.reading = Run()
        elif self.later is None:
            self.later = deque([Run()])
        else:
            self.later.append(Run())

    def take(self, chunk: int) -> Item | None:
        """Take a chunk of the oldest run out, once."""
        item = self.reading.take(chunk)
        if item is None:
            return None
        self.count -= 1
        self.bytes -= item.size
        if self.reading.taken and self.later:
            self.reading = self.later.popleft()
        return item

    def give_up(self, reason: str) -> None:
        """Drop what is in store; the rest of a run that is still being put will not be wanted."""
        run = self.writing
        if run.written:
            run.base, run.ahead = (run.final or 0) + 1, set()
        else:
            self.gone = reason
        run.held = {}
        self.reading, self.later = run, None
        self.count = self.bytes = 0

    def note_unwanted(self, chunk: int, message: ChunkMessage) -> None:
        """Remember the final chunk of a run that was given up: after it the id is free."""
        if message["finished"]:
            run = Run(chunk + 1)
            run.final = chunk
            self.reading, self.gone = run, None
