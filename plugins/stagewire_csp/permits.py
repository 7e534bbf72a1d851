"""Capacity boundaries: a strict FIFO semaphore whose release never suspends."""

from __future__ import annotations

from types import TracebackType

from stagewire_csp.waiting import WaitQueue


class Permits:
    """A number of permits, handed over directly and in FIFO order. Belongs to one event loop.

    Unlike `asyncio.Semaphore` it never lets a newcomer overtake, never loses a permit to a cancel, and refuses to count
    above its cap. ``async with permits:`` holds one; leaving the block is synchronous inside.

    Args:
        name: What the permits are for: ``physical``.
        cap: How many there are, at least 1.
    """

    __slots__ = ("_queue", "cap", "free", "name")

    def __init__(self, name: str, cap: int) -> None:
        if cap < 1:
            raise ValueError(f"{name}: a cap of {cap} would let nothing through; it must be at least 1")
        self.name = name
        self.cap = cap
        self.free = cap
        """How many can be had without waiting."""
        self._queue = WaitQueue[None](self._take_back)

    @property
    def held(self) -> int:
        """How many are out."""
        return self.cap - self.free

    @property
    def waiting(self) -> int:
        """How many coroutines wait for one."""
        return self._queue.waiting

    async def acquire(self) -> None:
        """Take a permit. Suspends only while none is free; cancel-safe, and a cancelled waiter holds nothing."""
        if self.free:
            self.free -= 1
        else:
            await self._queue.wait()

    def release(self) -> None:
        """Give a permit back: to the first who waits, else to the free ones. Never suspends.

        Raises:
            ValueError: More were released than acquired; nothing changed.
        """
        if self.free == self.cap:
            raise ValueError(f"{self.name}: released more often than acquired (cap {self.cap})")
        if not (self._queue.waiting and self._queue.hand(None)):
            self.free += 1

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _take_back(self, _nothing: None) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.held} of {self.cap} held, {self.waiting} waiting>"
