"""How much of one request may be on its way out of a stage, until the other side says that it was taken (OR-16)."""

from __future__ import annotations

import asyncio
from collections import deque

from stagewire.codec import weigh


class Window:
    """Counts outputs and their bytes; waits while there are too many. One that is too large passes alone.

    Belongs to one event loop; one task acquires.
    """

    def __init__(self, count: int, size: int) -> None:
        self._count = count
        self._size = size
        self._weights: deque[int] = deque()
        self._bytes = 0
        self._room = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether nothing more goes in now."""
        return len(self._weights) >= self._count or self._bytes >= self._size

    async def acquire(self, chunk: object) -> None:
        """Take an output in; waits for room."""
        while self.full:
            self._room.clear()
            await self._room.wait()
        weight = weigh(chunk)
        self._weights.append(weight)
        self._bytes += weight

    def release(self, count: int) -> None:
        """So many outputs were taken, the oldest first."""
        for _ in range(min(count, len(self._weights))):
            self._bytes -= self._weights.popleft()
        self._room.set()
