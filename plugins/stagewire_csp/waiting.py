"""Direct hand-over: what a waiting coroutine waits for is put into its hands, not left for whoever comes first.

This is the one place where coroutines of the runtime wait, so the ways in which waiting goes wrong are shut out once.
`asyncio.Condition` loses a wake-up when the coroutine that was notified is cancelled, and waking everyone costs O(n).
Here each waiter has a future of its own. Whoever has something to give sets the result of the first waiter that is not
cancelled; a waiter that is cancelled between that moment and its next step gives the thing back (CSP-6, CSP-13).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")

SLACK = 16
"""How many cancelled waiters are not worth sweeping out."""


class WaitQueue(Generic[R]):
    """A FIFO of coroutines, each waiting to be handed an ``R``. Belongs to one event loop; only `wait` suspends.

    Args:
        undo: Takes back what was handed to a waiter that was cancelled before it could take it. Must not raise.
    """

    __slots__ = ("_queue", "_undo", "waiting")

    def __init__(self, undo: Callable[[R], None]) -> None:
        self.waiting = 0
        """How many coroutines wait: one that was served does not, one that was cancelled does until it has unwound."""
        self._queue: deque[tuple[asyncio.Future[R], float]] = deque()
        self._undo = undo

    async def wait(self, *, since: float = 0.0, first: bool = False) -> R:
        """Wait to be handed something and return it. Cancel-safe: what was not taken goes to ``undo``."""
        future = self.join(since, first=first)
        try:
            return await future
        except BaseException:
            self.abandon(future)
            raise

    def join(self, since: float = 0.0, *, first: bool = False) -> asyncio.Future[R]:
        """Stand in line with a future to be awaited at once; when that raises, for whatever reason, call `abandon`.

        Args:
            since: When the wait began, for `first_since`.
            first: Stand at the head, having been served in vain.
        """
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        if first:
            self._queue.appendleft((future, since))
        else:
            self._queue.append((future, since))
        self.waiting += 1
        return future

    def abandon(self, future: asyncio.Future[R]) -> None:
        """Leave the line, giving back what was handed over."""
        if future.done() and not future.cancelled():
            if future.exception() is None:
                self._undo(future.result())
            return
        self.waiting -= 1
        if not future.done() or len(self._queue) > 2 * self.waiting + SLACK:
            self._queue = deque(place for place in self._queue if place[0] is not future and not place[0].done())

    def next(self) -> asyncio.Future[R] | None:
        """Take the first who waits out of the line: the caller sets its future at once. ``None`` when nobody waits."""
        queue = self._queue
        while queue:
            future = queue.popleft()[0]
            if not future.done():
                self.waiting -= 1
                return future
        return None

    def hand(self, thing: R) -> bool:
        """Give ``thing`` to the first who waits; returns ``False`` when nobody does."""
        future = self.next()
        if future is None:
            return False
        future.set_result(thing)
        return True

    def fail(self, make_error: Callable[[], BaseException]) -> None:
        """End every wait with an error of its own."""
        while (future := self.next()) is not None:
            future.set_exception(make_error())

    def ready(self) -> bool:
        """Return whether somebody can be handed something now."""
        queue = self._queue
        while queue:
            if not queue[0][0].done():
                return True
            queue.popleft()
        return False

    @property
    def first_since(self) -> float | None:
        """When the first in line began to wait, or ``None`` when nobody does."""
        return self._queue[0][1] if self._queue else None
