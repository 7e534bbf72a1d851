"""Virtual time for asyncio: timers fire at once, in order, and a run that waits for nothing is found at once.

The loop jumps to the next timer whenever nothing else is ready, so a test of a 240 s timeout takes microseconds and
`loop.time()` reads exactly what the code under test waited for. Threads and sockets do not fit in: a callback that
another thread posts arrives at whatever virtual time it is.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(AssertionError):
    """Nothing is ready, no timer is set, and the main task has not ended: it waits for ever."""


class _InstantSelector(selectors.DefaultSelector):
    """Polls, and tells the loop to jump instead of waiting."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events and timeout != 0:
            self.loop.jump(timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock starts at ``start`` and moves only when nothing else can happen.

    Attributes:
        ticks: How many rounds of ready callbacks were begun.
        on_tick: Called at the start of each round, before its callbacks, with its number; may cancel tasks.
    """

    def __init__(self, start: float = 0.0) -> None:
        selector = _InstantSelector()
        selector.loop = self
        self._virtual_now = start
        self.ticks = 0
        self.on_tick: Callable[[int], None] | None = None
        super().__init__(selector)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual_now

    def jump(self, timeout: float | None) -> None:
        """Move the clock on by ``timeout``; ``None`` means that there is nothing to wait for."""
        if timeout is None:
            raise Stuck("every task waits and no timer is set: the program under test is deadlocked")
        self._virtual_now += timeout

    def _run_once(self) -> None:
        self.ticks += 1
        if self.on_tick is not None:
            self.on_tick(self.ticks)
        super()._run_once()  # type: ignore[misc]


def run_virtual(main: Coroutine[Any, Any, T], *, start: float = 0.0) -> T:
    """Run ``main`` to its end in virtual time and return its result. Raises `Stuck` on a deadlock."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start)) as runner:
        return runner.run(main)
