"""A queue of one worker: anybody puts, it takes everything at once, and so wakes once for many."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Unbounded: what may be put is bounded elsewhere. Belongs to one event loop; one task takes."""

    def __init__(self) -> None:
        self._waiting: list[T] = []
        self._taker: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, item: T) -> None:
        """Append an item; never waits."""
        self._waiting.append(item)
        taker = self._taker
        if taker is not None and not taker.done():
            taker.set_result(None)

    async def take(self) -> list[T]:
        """Wait until there is something and take all of it, in order. Cancelling it loses nothing."""
        while not self._waiting:
            self._taker = asyncio.get_running_loop().create_future()
            try:
                await self._taker
            finally:
                self._taker = None
        return self.drain()

    def drain(self) -> list[T]:
        """Take all that is there."""
        taken, self._waiting = self._waiting, []
        return taken
