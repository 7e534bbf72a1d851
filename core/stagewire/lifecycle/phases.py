"""Steps in order, with kept progress: what was done is not done again, what is under way is joined (SD-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from stagewire.errors import StagewireError, describe

Step = Callable[[], Awaitable[object]]
"""One step of a shutdown: called again after it failed, never after it succeeded."""


class PhaseFailed(StagewireError):
    """A step failed; its error is ``__cause__``. The next run begins with this step.

    Attributes:
        phases: The name of the whole.
        step: The name of the step.
    """

    def __init__(self, phases: str, step: str, error: BaseException) -> None:
        self.phases = phases
        self.step = step
        super().__init__(f"{phases}: step {step!r} failed: {describe(error)}. The next attempt goes on there")


class Phases:
    """Named steps that are done in order, each once (SD-5). Belongs to one event loop.

    A step runs in a task of its own, which this object holds: cancelling a caller leaves the step at work, and the next
    caller joins it. Concurrent callers share each step and its outcome.

    Args:
        name: The whole, for messages: ``shutdown of the pipeline``.
        steps: Name and action of each step.
    """

    def __init__(self, name: str, steps: Iterable[tuple[str, Step]]) -> None:
        self.name = name
        self._steps = tuple(steps)
        self._done = 0
        self._task: asyncio.Task[None] | None = None
        self._failure: PhaseFailed | None = None

    @property
    def done(self) -> tuple[str, ...]:
        """The names of the steps done."""
        return tuple(name for name, _step in self._steps[: self._done])

    @property
    def remaining(self) -> tuple[str, ...]:
        """The names of the steps not done, the one under way included."""
        return tuple(name for name, _step in self._steps[self._done :])

    @property
    def failure(self) -> PhaseFailed | None:
        """The last failure, also of a step that no caller was waiting for; ``None`` once that step is done."""
        return self._failure

    async def run(self) -> None:
        """Do the steps that are not done, in order; returns when all are.

        Cancelling ends the wait, not the step. Later steps are begun by a caller only.

        Raises:
            PhaseFailed: A step failed, or was itself cancelled.
            RuntimeError: A step called this, and would wait for itself.
        """
        while self._done < len(self._steps):
            task = self._task = self._task or self._begin()
            if task is asyncio.current_task():
                raise RuntimeError(f"{self.name}: step {task.get_name()!r} would wait for itself")
            await asyncio.wait([task])
            self._check(task)

    def _begin(self) -> asyncio.Task[None]:
        name, step = self._steps[self._done]
        task = asyncio.get_running_loop().create_task(_perform(step), name=name)
        task.add_done_callback(self._settle)
        return task

    def _settle(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = _error_of(task)
        if error is None:
            self._done += 1
            self._failure = None
        else:
            self._failure = self._failed(task, error)

    def _check(self, task: asyncio.Task[None]) -> None:
        if (error := _error_of(task)) is not None:
            raise self._failed(task, error) from error

    def _failed(self, task: asyncio.Task[None], error: BaseException) -> PhaseFailed:
        failure = PhaseFailed(self.name, task.get_name(), error)
        failure.__cause__ = error
        return failure


async def _perform(step: Step) -> None:
    await step()


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    if task.cancelled():
        return asyncio.CancelledError("the step was cancelled")
    return task.exception()
