"""One session at its agent: a bounded queue of frames, in order, each once, and the barriers (WS-3 … WS-7)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagewire import describe
from stagewire_writes.bell import Bell
from stagewire_writes.checksums import ObjectChecksum
from stagewire_writes.errors import (
    ChecksumMismatch,
    FrameRefused,
    Incomplete,
    OffsetRefused,
    PayloadMissing,
    SessionEnded,
    StorageFault,
    WriteError,
)
from stagewire_writes.files import SessionFile
from stagewire_writes.offload import Offload
from stagewire_writes.protocol import Finalize, Frames, SessionState, Written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Fetch = Callable[[], Awaitable[Sequence[memoryview]]]
"""Gets the verified bytes of frames, in their order."""


@dataclass(slots=True)
class _Queued:
    offset: int
    data: memoryview


class AgentSession:
    """Takes frames in the order of their sequence numbers and writes them. Belongs to one event loop.

    Who brings frames has the turn when all before them have been taken, one at a time; so a payload is fetched only
    when there is nothing else to wait for but the disk, and what the session holds is at most its queue and one batch.

    Args:
        name: The session's id.
        file: Where it goes; the session ends by committing or discarding it.
        path: What the file is called, for messages.
        source: The generation of the controller that opened it.
        queue: Bytes of frames that may wait for the disk; a larger frame waits alone.
        offload: Runs what blocks.
        clock: For idleness.
    """

    def __init__(
        self,
        name: str,
        file: SessionFile,
        *,
        path: str,
        source: str,
        queue: int,
        offload: Offload,
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.path = path
        self.source = source
        self.touched = clock()
        self.received = 0
        """Frames 0 to this one, exclusively, were taken (WS-5)."""
        self.written = 0
        """The same for frames that were written."""
        self.written_bytes = 0
        self.failure: WriteError | None = None
        self.result: Written | None = None
        self._file = file
        self._limit = queue
        self._offload = offload
        self._clock = clock
        self._queue: deque[_Queued] = deque()
        self._queued = 0
        self.duplicates = 0
        """Frames that came again and were told by their number (WS-6)."""
        self._next_offset: int | None = 0
        self._checksum = ObjectChecksum()
        self._busy = False
        self._tickets: dict[int, object] = {}
        self._fetching: asyncio.Timeout | None = None
        self._bell = Bell()
        self._committing: asyncio.Task[Written] | None = None
        self._writer = asyncio.get_running_loop().create_task(self._write(), name=f"writer of session {name}")

    @property
    def queued(self) -> int:
        """Bytes that wait for the disk."""
        return self._queued

    def touch(self) -> None:
        """Note that its controller is alive."""
        self.touched = self._clock()

    def state(self) -> SessionState:
        """Return how it is."""
        failure = self.failure
        code, text = ("", "") if failure is None else (failure.code, str(failure))
        return SessionState(self.received, self.written_bytes, code, text)

    async def take(self, frames: Frames, fetch: Fetch, limit: float) -> None:
        """Queue those of the frames that were not taken before; returns when all are (WS-6).

        Waits for its turn, for the bytes (at most ``limit`` seconds), and for room in the queue (WS-7). Cancelled, it
        may have taken some.

        Raises:
            OffsetRefused: They do not begin where the ones before them end (WS-4).
            WriteError: The session has ended or failed, or what ``fetch`` raises.
        """
        async with self._turn(frames.sequence):
            last = frames.sequence + len(frames.lengths)
            self.duplicates += max(0, min(last, self.received) - frames.sequence)
            if last <= self.received:
                return
            self._check_offset(frames)
            data = await self._fetched(fetch, limit)
            if [len(each) for each in data] != frames.lengths:
                raise FrameRefused(f"frames of {[len(each) for each in data]} bytes came as {frames.lengths}")
            offset = frames.offset
            for sequence, (each, crc) in enumerate(zip(data, frames.checksums, strict=True), frames.sequence):
                if sequence >= self.received:
                    await self._room(len(each))
                    self._checksum.add(sequence, crc, len(each))
                    self._push(each, offset)
                offset += len(each)

    async def barrier(self, expected: int, timeout: float, *, rebase: bool = False) -> None:
        """Wait until the frames 0 to ``expected``, exclusively, are written (WS-3, WS-5).

        With ``rebase`` the next payload may begin anywhere (WS-4).

        Raises:
            Incomplete: Frames are missing after ``timeout`` seconds.
        """
        await self._all_written(expected, timeout)
        self._raise_if_over()
        if rebase:
            self._next_offset = None

    async def finalize(self, request: Finalize, timeout: float) -> Written:
        """Wait for every write, verify the whole, set the length, give the file its name, end (WS-3).

        Whoever asks again, having missed the answer, is told the same. Cancelling leaves the commit under way.
        """
        if self.result is not None:
            return self.result
        await self._all_written(request.expected_frames, timeout)
        if self._committing is None:
            if request.checksum is not None and request.checksum != self._checksum.value:
                raise ChecksumMismatch(f"{self.path!r}: the whole is not what was sent; nothing was kept")
            self._committing = asyncio.get_running_loop().create_task(self._commit(request.final_size))
            self._committing.add_done_callback(_mark_retrieved)
        return await asyncio.shield(self._committing)

    async def _all_written(self, expected: int, timeout: float) -> None:
        """Wait until all announced frames are written, or the commit has begun, which comes after that."""
        try:
            async with asyncio.timeout(timeout):
                while self.written < expected and self._committing is None:
                    self._raise_if_over()
                    await self._bell.wait()
        except TimeoutError:
            raise Incomplete(
                f"{self.path!r}: {self.written} of {expected} frames are written and {self.received} were received"
                f" after {timeout:g} s"
            ) from None
        if self._committing is None:
            self._raise_if_over()
            if self.received != expected:
                raise FrameRefused(f"{self.path!r}: {self.received} frames were received, {expected} announced")

    def end(self, failure: WriteError) -> None:
        """Take nothing more, drop what is queued, discard the file; `gone` tells when that is done. Idempotent."""
        if self._committing is None and self.failure is None:
            self.failure = failure
            self._drop()

    async def gone(self) -> None:
        """Wait until nothing of it is left: its path is free and no byte is held."""
        await asyncio.wait([self._writer])
        if self._committing is not None:
            await asyncio.wait([self._committing])

    def _drop(self) -> None:
        self._queue.clear()
        self._queued = 0
        if self._fetching is not None:
            self._fetching.reschedule(asyncio.get_running_loop().time())
        self._bell.ring()

    @asynccontextmanager
    async def _turn(self, sequence: int) -> AsyncIterator[None]:
        """Wait until all frames before this one were taken; a repeat of the request takes the place in the row."""
        ticket = self._tickets[sequence] = object()
        while self._busy or sequence > self.received:
            self._raise_if_over()
            if self._tickets.get(sequence) is not ticket:
                raise FrameRefused(f"{self.path!r}: the batch at frame {sequence} was sent again meanwhile")
            await self._bell.wait()
        self._raise_if_over()
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
            if self._tickets.get(sequence) is ticket:
                del self._tickets[sequence]
            self._bell.ring()

    async def _fetched(self, fetch: Fetch, limit: float) -> Sequence[memoryview]:
        try:
            async with asyncio.timeout(limit) as self._fetching:
                return await fetch()
        except TimeoutError:
            self._raise_if_over()
            raise PayloadMissing(f"{self.path!r}: a payload did not come within {limit:g} s") from None
        finally:
            self._fetching = None

    async def _room(self, size: int) -> None:
        while self._queued and self._queued + size > self._limit:
            self._raise_if_over()
            await self._bell.wait()
        self._raise_if_over()

    def _check_offset(self, frames: Frames) -> None:
        skipped = sum(frames.lengths[: max(0, self.received - frames.sequence)])
        if self._next_offset is not None and frames.offset + skipped != self._next_offset:
            raise OffsetRefused(
                f"{self.path!r}: a payload at offset {frames.offset + skipped} does not follow the one before:"
                f" {self._next_offset} is expected"
            )

    def _push(self, data: memoryview, offset: int) -> None:
        self._queue.append(_Queued(offset, data))
        self._queued += len(data)
        self.received += 1
        self._next_offset = offset + len(data)
        self._bell.ring()

    def _raise_if_over(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self._committing is not None:
            raise SessionEnded(f"{self.path!r}: the session was finalized; it takes nothing more")

    async def _write(self) -> None:
        """Write the queue, frame by frame, until the session ends; then discard the file unless it was committed."""
        while self.failure is None and self._committing is None:
            if self._queue:
                await self._write_next()
            else:
                await self._bell.wait()
        if self.failure is not None:
            with suppress(Exception):
                await self._offload(self._file.discard)

    async def _write_next(self) -> None:
        head = self._queue[0]
        try:
            await self._offload(self._file.write, head.data, head.offset)
        except Exception as error:  # noqa: BLE001 — whatever it was, the session cannot go on
            self.end(_named(error))
        if self.failure is None:
            self._queue.popleft()
            self._queued -= len(head.data)
            self.written += 1
            self.written_bytes += len(head.data)
        self._bell.ring()

    async def _commit(self, size: int) -> Written:
        self._bell.ring()  # sends the writer home: there is nothing left to write
        try:
            self.result = await self._offload(self._file.commit, size)
        except Exception as error:
            self.failure = _named(error)
            with suppress(Exception):
                await self._offload(self._file.discard)
            raise self.failure from error
        return self.result


def _named(error: Exception) -> WriteError:
    return error if isinstance(error, WriteError) else StorageFault(describe(error))


def _mark_retrieved(commit: asyncio.Task[Written]) -> None:
    """Whoever asked for it may be gone; its failure is the session's."""
    if not commit.cancelled():
        commit.exception()


def frames_of(value: memoryview, lengths: Sequence[int]) -> list[memoryview]:
    """Return the frames of a batch as slices of it, without a copy. Raises `FrameRefused`."""
    if sum(lengths) != len(value):
        raise FrameRefused(f"a payload of {len(value)} bytes is announced as {sum(lengths)}")
    frames, at = [], 0
    for length in lengths:
        frames.append(value[at : at + length])
        at += length
    return frames


def verified(frames: Sequence[memoryview], found: Sequence[int], announced: Sequence[int], first: int) -> None:
    """Raise `ChecksumMismatch` naming the first frame that is not as announced (WS-18)."""
    for number, (ours, theirs) in enumerate(zip(found, announced, strict=True)):
        if ours != theirs:
            raise ChecksumMismatch(f"frame {first + number} ({len(frames[number])} bytes) changed on its way")
