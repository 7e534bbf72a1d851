"""A registry owns background tasks: what was admitted is joined, and after it closed none is spawned (SD-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from stagewire.errors import Closed, StillHeld, describe
from stagewire.events import emit
from stagewire.logs import fallback_logger

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

T = TypeVar("T")

OnFailure = Callable[[asyncio.Task[Any], BaseException], None]
"""Takes a task that failed and its error; called on the event loop, must return at once."""


class TaskRegistry:
    """Keeps the tasks of one owner, from their admission to their end (SD-3).

    Belongs to one event loop: between two ``await`` nothing else runs there, so admission and the final take are
    atomic. A handle leaves the registry only when its task has ended, so cancelling `join` or `drain` loses none.

    Args:
        name: Whose tasks these are, for messages and logs.
        log: Where failures are reported, as the event ``task.failed``. Default: warnings on standard error.
        on_failure: Takes failures instead of the log.
    """

    def __init__(
        self, name: str, *, log: FilteringBoundLogger | None = None, on_failure: OnFailure | None = None
    ) -> None:
        self.name = name
        self._log = log
        self._on_failure = on_failure or self._log_failure
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._closed = False

    def __len__(self) -> int:
        """How many tasks have not ended."""
        return len(self._tasks)

    @property
    def closed(self) -> bool:
        """Whether admission has ended."""
        return self._closed

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks that have not ended, in the order of their admission."""
        return tuple(task.get_name() for task in self._tasks)

    def spawn(self, coro: Coroutine[Any, Any, T], *, name: str, report: bool = True) -> asyncio.Task[T]:
        """Admit a task and start it.

        Args:
            coro: What it runs.
            name: What it is called, in logs too.
            report: Whether a failure is reported when the task ends. ``False`` leaves that to whoever awaits the task.

        Raises:
            Closed: The registry is closed; ``coro`` was closed and never ran.
        """
        if self._closed:
            coro.close()
            raise Closed(f"{self.name} is closed: task {name!r} was not started")
        task = asyncio.get_running_loop().create_task(coro, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended if report else self._forget)
        return task

    def close(self) -> None:
        """End admission. Tasks go on. Idempotent."""
        self._closed = True

    def cancel_all(self) -> int:
        """Ask every task to cancel, except the one that calls; returns how many those were."""
        caller = asyncio.current_task()
        others = [task for task in self._tasks if task is not caller]
        for task in others:
            task.cancel()
        return len(others)

    async def join(self) -> None:
        """Wait until every task has ended, those too that are admitted meanwhile. Their failures are not raised.

        Raises:
            RuntimeError: One of the tasks tried to join its own registry, which would never end.
        """
        self._refuse_own_task()
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    async def drain(self, grace: float) -> None:
        """Close, give the tasks ``grace`` seconds to end, cancel the rest and give those ``grace`` seconds (SD-7).

        Raises:
            StillHeld: Some did not end even then. They stay registered: drain or join again.
            RuntimeError: One of the tasks tried to drain its own registry.
        """
        self._refuse_own_task()
        self.close()
        if await self._ended_within(grace):
            return
        self.cancel_all()
        if not await self._ended_within(grace):
            raise StillHeld(self.name, [f"task {name}" for name in self.names])

    async def _ended_within(self, seconds: float) -> bool:
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
        return not self._tasks

    def _refuse_own_task(self) -> None:
        task = asyncio.current_task()
        if task is not None and task in self._tasks:
            raise RuntimeError(f"task {task.get_name()!r} would wait for itself: join {self.name} from outside")

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._forget(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(task, error)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def _log_failure(self, task: asyncio.Task[Any], error: BaseException) -> None:
        log = self._log or fallback_logger()
        emit(log, "task.failed", owner=self.name, task=task.get_name(), cause=describe(error), exc_info=error)
