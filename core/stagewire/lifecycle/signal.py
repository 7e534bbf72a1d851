"""A stop signal is persistent state plus a wake-up (SD-1): whoever comes late still sees it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class StopSignal:
    """Says once, and for ever, that something is to stop, and why (SD-1).

    Any thread may call any method; coroutines of any number of event loops may wait. Not to be set from a raw
    ``signal.signal`` handler, which may interrupt the very thread that holds the lock: use `stop_on_signals`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = threading.Event()
        self._waiters: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        self._reason: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether the stop was asked for."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why, as the first caller of `set` said; ``None`` while nobody has."""
        return self._reason

    def set(self, reason: str) -> bool:
        """Ask for the stop and wake every waiter. The first reason wins; returns whether this call was the first."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            waiters, self._waiters = self._waiters, {}
        self._threads.set()
        for future, loop in waiters.items():
            _wake(future, loop)
        return True

    async def wait(self) -> str:
        """Wait until the signal is set and return the reason; at once when it already is."""
        while self._reason is None:
            await self._wake_up()
        return self._reason

    def wait_blocking(self, timeout: float | None = None) -> bool:
        """Block the calling thread until the signal is set; returns ``False`` after ``timeout`` seconds without it."""
        return self._threads.wait(timeout)

    async def _wake_up(self) -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with self._lock:
            if self._reason is not None:
                return
            self._waiters[future] = loop
        try:
            await future
        finally:
            with self._lock:
                self._waiters.pop(future, None)


def _wake(future: asyncio.Future[None], loop: asyncio.AbstractEventLoop) -> None:
    if loop is _running_loop():
        _resolve(future)
        return
    with suppress(RuntimeError):  # that loop was closed: nobody waits there any more
        loop.call_soon_threadsafe(_resolve, future)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
