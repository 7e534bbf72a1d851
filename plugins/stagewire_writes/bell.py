"""Wakes everybody who waits for a change of some state; each looks for itself whether it is the one it waits for."""

from __future__ import annotations

import asyncio


class Bell:
    """Belongs to one event loop: ``while not condition: await bell.wait()``, and ``ring`` after every change."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        """Wake all who wait."""
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Wait for the next ring."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
