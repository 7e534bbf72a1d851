"""What one request has on one edge, as plain data: runs of chunks, each from id 0 to a final one.

A run knows which ids were put and which were taken, so that a repeat is known before and after it was taken. The reader
is always in the oldest run and the writer in the newest, which lets a request id be used again while its last run is
still being read (CH-7).
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto

from stagewire import ChunkMessage, Permanent

SMALL = 4_096
"""Up to this weight the message of a run that has only one is remembered after it was taken, to know a repeat of it."""


Item = tuple[ChunkMessage, int, float]
"""One chunk in store: the message, its weight, when it was put. A plain tuple: one is made for every chunk."""


class Verdict(Enum):
    """What a put is."""

    NEW = auto()
    REPEAT = auto()
    UNWANTED = auto()


class Run:
    """The chunks of one run. All before ``next`` were put; of those and of ``held``, what is not held was taken."""

    __slots__ = ("early", "final", "held", "next", "only")

    def __init__(self, first: int = 0) -> None:
        self.next = first
        self.held: dict[int, Item] = {}
        self.early: set[int] = set()
        self.final: int | None = None
        self.only: ChunkMessage | None = None

    @property
    def written(self) -> bool:
        """Whether all of it was put."""
        return self.final is not None and self.next > self.final

    def has(self, chunk: int) -> bool:
        """Whether the chunk was put, be it still here or not."""
        return chunk < self.next or chunk in self.early

    def repeats(self, chunk: int, message: ChunkMessage) -> bool:
        """Whether a put after the end of the run belongs to it: any chunk but the first, or the very same message."""
        if chunk:
            return True
        held = self.held.get(0)
        return message is self.only or (held is not None and held[0] is message)

    def add(self, chunk: int, item: Item) -> None:
        self.held[chunk] = item
        if chunk == self.next:
            self.next += 1
            while self.next in self.early:
                self.early.remove(self.next)
                self.next += 1
        else:
            self.early.add(chunk)
        message, size, _ = item
        if message["finished"]:
            self.final = chunk
            self.only = message if chunk == 0 and size <= SMALL else None


class Stream:
    """The runs of one request on one edge. Not thread-safe: `ChunkStore` holds its lock around every call."""

    __slots__ = ("bytes", "count", "gone", "later", "reading", "seen_at", "writing")

    def __init__(self, first: int, now: float) -> None:
        self.reading = self.writing = Run(first)
        self.later: deque[Run] | None = None
        self.count = 0
        self.bytes = 0
        self.seen_at = now
        self.gone: str | None = None

    @property
    def ended(self) -> bool:
        """Whether only the memory of it is left: all was put and taken, or nobody wants the rest."""
        return self.gone is not None or (not self.count and self.writing.written)

    def goes_on(self, chunk: int, item: Item, chunks: int, room: int) -> bool:
        """Keep a chunk that plainly goes on with the run, within bounds; returns whether it was, the rest is judged.

        That is the very next one of the run that is being put, not its final, and none of later ids is here.
        """
        message, size, put_at = item
        run, held = self.writing, self.bytes + size
        if chunk != run.next or message["finished"] or self.count >= chunks or held > room:
            return False
        if run.final is not None or run.early or self.gone is not None:
            return False
        run.held[chunk] = item
        run.next = chunk + 1
        self.count += 1
        self.bytes = held
        self.seen_at = put_at
        return True

    def judge(self, chunk: int, message: ChunkMessage) -> Verdict:
        """Say what a put is: a new chunk, a repeat, or the rest of a run that was given up.

        Raises:
            Permanent: It lies past the final chunk of its run.
        """
        run = self.writing
        if run.written:
            return Verdict.REPEAT if run.repeats(chunk, message) else Verdict.NEW
        if self.gone is not None:
            return Verdict.NEW if chunk == 0 else Verdict.UNWANTED
        if run.has(chunk):
            return Verdict.REPEAT
        if run.final is not None and chunk > run.final:
            raise Permanent(
                f"chunk {chunk} lies past the final chunk {run.final}: put nothing after a finished message"
            )
        return Verdict.NEW

    def gap(self, chunk: int) -> int:
        """Return how many chunks before a new one are missing."""
        return chunk if self.gone is not None or self.writing.written else chunk - self.writing.next

    def store(self, chunk: int, item: Item) -> None:
        """Keep a chunk that was judged to be new."""
        if self.gone is not None:
            self.reading = self.writing = Run()
            self.gone = None
        elif self.writing.written:
            self._begin()
        self.writing.add(chunk, item)
        self.count += 1
        self.bytes += item[1]
        self.seen_at = item[2]

    def _begin(self) -> None:
        self.writing = Run()
        if not self.count:
            self.reading = self.writing
        else:
            self.later = self.later or deque()
            self.later.append(self.writing)

    def take(self, chunk: int) -> Item | None:
        """Take a chunk of the oldest run out, once."""
        run = self.reading
        item = run.held.pop(chunk, None)
        if item is None:
            return None
        self._took(run, 1, item[1])
        return item

    def take_many(self, chunk: int, limit: int) -> list[Item]:
        """Take a chunk and those right after it, up to the final one."""
        run, items, size = self.reading, list[Item](), 0
        pop = run.held.pop
        for number in range(chunk, chunk + limit):
            item = pop(number, None)
            if item is None:
                break
            items.append(item)
            size += item[1]
            if item[0]["finished"]:
                break
        self._took(run, len(items), size)
        return items

    def _took(self, run: Run, count: int, size: int) -> None:
        """Account for what was taken out of the oldest run; its successor is read when nothing is left of it."""
        self.count -= count
        self.bytes -= size
        if self.later and not run.held and run.written:
            self.reading = self.later.popleft()

    def give_up(self, reason: str) -> None:
        """Drop what is in store; the rest of a run that is still being put will not be wanted."""
        if not self.writing.written:
            self.gone = reason
        self.writing.held = {}
        self.reading, self.later = self.writing, None
        self.count = self.bytes = 0

    def note_unwanted(self, chunk: int, message: ChunkMessage) -> None:
        """Remember the final chunk of a run that was given up: after it the id is free."""
        if message["finished"]:
            self.reading = self.writing = Run(chunk + 1)
            self.writing.final = chunk
            self.gone = None
