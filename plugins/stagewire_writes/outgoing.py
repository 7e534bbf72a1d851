"""One session at its controller: what is submitted, what is on its way, and the barriers (WS-3, WS-4, WS-7)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from stagewire import Buffer, describe, emit
from stagewire_writes.bell import Bell
from stagewire_writes.checksums import ObjectChecksum
from stagewire_writes.errors import OffsetRefused, SessionEnded, WriteError
from stagewire_writes.options import SessionOptions
from stagewire_writes.presence import Node

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


@dataclass(slots=True, eq=False)
class Batch:
    """Consecutive frames of one submit (WS-2). ``view`` holds all of them, one after the other."""

    sequence: int
    offset: int
    view: memoryview
    lengths: list[int]
    checksums: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.view)

    def frame(self, index: int) -> memoryview:
        """Return one frame, without a copy."""
        start = sum(self.lengths[:index])
        return self.view[start : start + self.lengths[index]]


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """How far a session is, in bytes (WS-20). ``path`` is how payload goes: by reference, or in the messages."""

    accepted: int
    acknowledged: int
    written: int
    path: Literal["KV-ref", "Raw"]


@dataclass(slots=True)
class Traffic:
    """What went which way, in bytes that were acknowledged, and how many frames were sent again."""

    kv_bytes: int = 0
    raw_bytes: int = 0
    retries: int = 0


Observe = Callable[[SessionProgress], None]


def cut(view: memoryview, offset: int, sequence: int, options: SessionOptions) -> list[Batch]:
    """Cut one submit into frames, and those into batches, without a copy (WS-2)."""
    frame = int(options.frame)
    per_batch = min(options.batch_frames, max(1, options.batch // frame)) * frame
    batches = []
    for start in range(0, len(view), per_batch):
        part = view[start : start + per_batch]
        lengths = [min(frame, len(part) - at) for at in range(0, len(part), frame)]
        batches.append(Batch(sequence, offset + start, part, lengths))
        sequence += len(lengths)
    return batches


class Outgoing:
    """The state of one session. Belongs to one event loop.

    Args:
        name: The session's id at the agent.
        node: The agent; a session stays with it (WS-14).
        path: What is written, for messages.
        options: Bounds.
        raw: Why payload goes in the messages from the start; ``None`` when it goes by reference.
        observe: Takes the progress whenever it changes; must return at once.
        log: For the events ``session.*``.
    """

    def __init__(
        self,
        name: str,
        node: Node,
        path: str,
        options: SessionOptions,
        *,
        raw: str | None,
        observe: Observe,
        log: FilteringBoundLogger,
    ) -> None:
        self.name = name
        self.node = node
        self.path = path
        self.raw = raw
        self.failure: Exception | None = None
        self.frames = 0
        """How many frames were submitted."""
        self.end = 0
        """Where the file ends."""
        self.sequential = True
        """Whether every payload followed the one before it, barriers or not."""
        self.checksum = ObjectChecksum()
        self.traffic = Traffic()
        self._options = options
        self._observe = observe
        self._log = log
        self._pending: deque[Batch] = deque()
        self._next_offset: int | None = 0
        self._in_flight = 0
        self._accepted = self._acknowledged = self._written = 0
        self._submitting = asyncio.Lock()
        self._bell = Bell()
        self._closed = False
        self._scopes: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def while_alive(self) -> AsyncIterator[None]:
        """Run the block until the session fails, which ends the block with `TimeoutError`."""
        async with asyncio.timeout(None) as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    @property
    def in_flight(self) -> int:
        """Bytes that were submitted and not acknowledged."""
        return self._in_flight

    @property
    def idle(self) -> bool:
        """Whether nothing waits or is on its way."""
        return self._in_flight == 0

    @property
    def progress(self) -> SessionProgress:
        """How far it is."""
        path: Literal["KV-ref", "Raw"] = "KV-ref" if self.raw is None else "Raw"
        return SessionProgress(self._accepted, self._acknowledged, self._written, path)

    async def submit(self, offset: int, payload: Buffer) -> int:
        """Queue a payload, and no more (WS-3); returns how many batches it is. It must not change until a barrier.

        Waits while the window is full; a payload larger than the window is let in alone (WS-7). Cancelled while it
        waits, it has queued nothing.

        Raises:
            OffsetRefused: It does not follow the one before it (WS-4).
            WriteError: The session has failed or ended.
        """
        async with self._submitting:
            self.raise_if_over()
            self._check_offset(offset)
            view = memoryview(payload).cast("B").toreadonly() if len(payload) else memoryview(b"")
            size = len(view)
            while self._in_flight and self._in_flight + size > self._options.window:
                await self._bell.wait()
                self.raise_if_over()
            batches = cut(view, offset, self.frames, self._options)
            self._queue(batches, size)
            return len(batches)

    async def acknowledged(self) -> None:
        """Wait until nothing is on its way. Raises why the session failed."""
        while self._in_flight:
            self.raise_if_over()
            await self._bell.wait()
        self.raise_if_over()

    def close(self) -> None:
        """Take no more payloads; what was submitted goes on."""
        self._closed = True

    def rebase(self) -> None:
        """Let the next payload begin anywhere: a barrier was passed (WS-4)."""
        self._next_offset = None

    def next_batch(self) -> Batch | None:
        """Take the next batch to send; none when the session failed."""
        return self._pending.popleft() if self._pending and self.failure is None else None

    def settle(self, batch: Batch, written: int, *, raw: bool) -> None:
        """Note that a batch was acknowledged, and whether it went in the messages."""
        if raw:
            self.traffic.raw_bytes += batch.size
        else:
            self.traffic.kv_bytes += batch.size
        self._in_flight -= batch.size
        self._acknowledged += batch.size
        self.note_written(written)
        self._bell.ring()

    def note_written(self, written: int) -> None:
        """Note how many bytes the agent has written."""
        self._written = max(self._written, written)
        self._observe(self.progress)

    def note_checksums(self, batch: Batch) -> None:
        """Take the checksums of a batch into that of the object."""
        for number, (crc, length) in enumerate(zip(batch.checksums, batch.lengths, strict=True), batch.sequence):
            self.checksum.add(number, crc, length)

    def degrade(self, cause: str) -> None:
        """Send payload in the messages from now on, for good (WS-9). Idempotent."""
        if self.raw is None:
            self.raw = cause
            emit(self._log, "session.degraded", session_id=self.name, path=self.path, cause=cause)
            self._observe(self.progress)

    def fail(self, error: Exception) -> None:
        """End it; whoever waits is told why (WS-7). The first error stays."""
        if self.failure is None:
            self.failure = error
            self._pending.clear()
            for scope in self._scopes:
                scope.reschedule(asyncio.get_running_loop().time())
            if not isinstance(error, SessionEnded):
                emit(self._log, "session.failed", session_id=self.name, path=self.path, cause=describe(error))
            self._bell.ring()

    def raise_if_over(self) -> None:
        """Raise why it takes nothing more."""
        if self.failure is not None:
            raise self.failure
        if self._closed:
            raise SessionEnded(f"{self.path!r}: the session is being finalized; it takes nothing more")

    def _check_offset(self, offset: int) -> None:
        if offset < 0 or (self._next_offset is not None and offset != self._next_offset):
            raise OffsetRefused(
                f"{self.path!r}: a payload at offset {offset} does not follow the one before: {self._next_offset} is"
                " expected"
            )

    def _queue(self, batches: list[Batch], size: int) -> None:
        for batch in batches:
            self.sequential &= batch.offset == self._accepted
            self._accepted += batch.size
            self._pending.append(batch)
            self.frames = batch.sequence + len(batch.lengths)
            self._next_offset = batch.offset + batch.size
            self.end = max(self.end, self._next_offset)
        self._in_flight += size
        self._observe(self.progress)


def as_write_error(error: Exception, path: str) -> Exception:
    """Return the error as one of write sessions, where it is not one already."""
    if isinstance(error, WriteError):
        return error
    named = WriteError(f"{path!r}: {describe(error)}")
    named.__cause__ = error
    return named
