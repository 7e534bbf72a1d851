"""What every suite has: a loop of its own for each test, deadlines instead of sleeps, and unique names."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, TypeVar

from stagewire.testing.leaks import no_task_leaks

T = TypeVar("T")
X = TypeVar("X")
S = TypeVar("S", bound="Suite")

_numbers = itertools.count()


class Suite:
    """Base of the suites. A test is a plain function that runs a coroutine with `run`; no pytest plugin is needed.

    Attributes:
        patience: Seconds after which something that should happen has not.
        moment: Seconds that are long for the backend: what has not happened by then will not. Raise it for slow ones.
    """

    patience: ClassVar[float] = 10.0
    moment: ClassVar[float] = 0.05

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run a test's coroutine to its end. Override to run it in virtual time (`run_virtual`)."""
        return asyncio.run(main)

    def check(self, main: Coroutine[Any, Any, None]) -> None:
        """Run a test, and fail it when it leaves tasks behind."""

        async def guarded() -> None:
            async with no_task_leaks():
                await main

        self.run(guarded())

    async def advance(self, seconds: float) -> None:
        """Let time pass for the backend. Override where its clock is injected."""
        await asyncio.sleep(seconds)

    def now(self) -> float:
        """Return the App's monotonic clock, on which leases expire. Override together with `advance`."""
        return time.monotonic()

    async def eventually(self, probe: Callable[[], T], what: str) -> T:
        """Return the first true result of the probe; fail when there is none within ``patience`` seconds."""

        async def attempt() -> T:
            return probe()

        return await self.eventually_awaited(attempt, what)

    async def eventually_awaited(self, probe: Callable[[], Awaitable[T]], what: str) -> T:
        """Do what `eventually` does with a probe that is a coroutine function."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience
        pause = 0.001
        while not (result := await probe()):
            if loop.time() > deadline:
                raise AssertionError(f"not within {self.patience:g} s: {what}")
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
        return result

    def unique(self, name: str) -> str:
        """Return a name that no other test uses, also where a broker is shared with other runs."""
        return f"{name}-{next(_numbers)}-{uuid.uuid4().hex[:8]}"


def scenario(
    test: Callable[[S, X], Awaitable[None]], subject: Callable[[S], AbstractAsyncContextManager[X]]
) -> Callable[[S], None]:
    """Return a plain test method that opens the suite's subject and runs the coroutine function with it."""

    def run_test(self: S) -> None:
        async def main() -> None:
            async with subject(self) as opened:
                await test(self, opened)

        self.check(main())

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(run_test, name, getattr(test, name))  # not __wrapped__: pytest would take its parameters for fixtures
    return run_test


@asynccontextmanager
async def background(main: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run a coroutine as a task beside the block; it is cancelled and awaited at the end if it has not ended."""
    task = asyncio.create_task(main)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def refused(kind: type[BaseException], attempt: Awaitable[object], what: str) -> BaseException:
    """Return the exception of this kind that the attempt raises; fail when it raises none."""
    try:
        result = await attempt
    except kind as error:
        return error
    raise AssertionError(f"{what} must raise {kind.__name__}, and returned {result!r}")
