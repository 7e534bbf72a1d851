"""Whether one side still produces, and which of its workers are at work rather than waiting to begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class SourceEnded(Exception):
    """This side makes no more; the worker ends."""


class Source:
    """The production of one side: it begins nothing more once it has ended, and what was begun goes on.

    A worker that only waits to begin (at the gate, for a permit, in a pause) owns nothing, so ending cancels it.
    Belongs to one event loop.

    Args:
        on_exhausted: Called when it has ended and nothing that was begun is under way; perhaps more than once.
    """

    def __init__(self, on_exhausted: Callable[[], None]) -> None:
        self._on_exhausted = on_exhausted
        self.ended = False
        """Whether nothing more is begun."""
        self._workers: set[asyncio.Task[Any]] = set()
        self._busy: set[asyncio.Task[Any]] = set()

    def add_worker(self, task: asyncio.Task[Any]) -> None:
        """Count a worker in; it counts itself out when it ends."""
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    @property
    def busy(self) -> int:
        """How many workers have begun something and not finished it."""
        return len(self._busy)

    def begin(self) -> None:
        """Note that the current worker begins to make one. Raises `SourceEnded` when nothing more is begun."""
        if self.ended:
            raise SourceEnded
        self._busy.add(_current())

    def rest(self) -> None:
        """Note that the current worker is done with what it began, if it began something."""
        self._busy.discard(_current())
        self._tell_if_exhausted()

    def end(self) -> None:
        """Begin nothing more, and send home the workers that wait to. Idempotent."""
        self.ended = True
        for task in self._workers - self._busy - {asyncio.current_task()}:
            task.cancel()
        self._tell_if_exhausted()

    def _tell_if_exhausted(self) -> None:
        if self.ended and not self._busy:
            self._on_exhausted()


def _current() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None, "workers are tasks"
    return task
