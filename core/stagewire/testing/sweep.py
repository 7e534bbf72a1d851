"""Cancels a program at every tick of its event loop, one run per tick, and checks what is left each time.

A cancel may arrive at any ``await``, and the interesting ones are those that nobody thought of. In virtual time a
program is deterministic, so its loop ticks can be counted once and then tried one by one.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from stagewire.testing.clock import Stuck, VirtualLoop

W = TypeVar("W")

MAX_TICKS = 10_000
"""Ticks after which one run is taken to go on for ever."""


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of the scenario, as the check sees it.

    Attributes:
        tick: At the start of which tick the cancel came, from 1; ``None`` for the run without one.
        hit: Whether it reached a task that had not ended.
        outcome: What the scenario returned, or the exception (`asyncio.CancelledError` too) that it ended with.
    """

    tick: int | None
    hit: bool
    outcome: object


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep covered: how many ticks the scenario takes undisturbed, and how many cancels reached a task."""

    ticks: int
    hits: int


def sweep_cancels(
    world: Callable[[], W],
    scenario: Callable[[W], Coroutine[Any, Any, object]],
    check: Callable[[W, SweepRun], Awaitable[None]],
    *,
    victim: Callable[[W], asyncio.Task[Any] | None] | None = None,
    cancels: int = 1,
    max_ticks: int = MAX_TICKS,
) -> SweepResult:
    """Run the scenario undisturbed, then once per tick with a cancel at that tick, and check after each run.

    Every run has its own event loop in virtual time. Beside what ``check`` asserts, a run fails when a task is left
    after it, when the loop reports an exception that nobody retrieved, and when it takes more than ``max_ticks``. A
    failure carries a note that names the tick.

    Args:
        world: Builds what the scenario works on; called on the running loop, before each run.
        scenario: The program; runs as the main task.
        check: Asserts the invariants once the main task has ended. It may go on with the world: close again, join, …
        victim: Returns the task to cancel, when the tick has come; ``None`` for no task yet. Default: the main task.
        cancels: On how many ticks in a row the cancel is repeated, to find cleanup that does not stand a second one.
        max_ticks: Ticks of one run, its check included.
    """
    sweep = _Sweep(world=world, scenario=scenario, check=check, victim=victim, cancels=cancels, max_ticks=max_ticks)
    length, _hit = sweep.run(None)
    hits = sum(sweep.run(tick)[1] for tick in range(1, length + 1))
    gc.collect()  # a task that failed unseen reports it when it is collected
    sweep.refuse_reports("after the sweep")
    return SweepResult(length, hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sweep(Generic[W]):
    world: Callable[[], W]
    scenario: Callable[[W], Coroutine[Any, Any, object]]
    check: Callable[[W, SweepRun], Awaitable[None]]
    victim: Callable[[W], asyncio.Task[Any] | None] | None
    cancels: int
    max_ticks: int
    reports: list[dict[str, Any]] = field(default_factory=list)

    def run(self, tick: int | None) -> tuple[int, bool]:
        """One run; returns the ticks that the scenario took and whether the cancel hit."""
        try:
            with asyncio.Runner(loop_factory=VirtualLoop) as runner:
                result = runner.run(self._main(tick))
            self.refuse_reports("during the run")
        except BaseException as error:
            error.add_note("in the run without a cancel" if tick is None else f"in the run cancelled at tick {tick}")
            raise
        return result

    async def _main(self, tick: int | None) -> tuple[int, bool]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "made by the runner above"
        loop.set_exception_handler(lambda _loop, report: self.reports.append(report))
        world = self.world()
        main = loop.create_task(self.scenario(world), name="scenario")
        injector = _Injector(loop, tick, self.cancels, self.max_ticks, lambda: self._chosen(world, main))
        await asyncio.wait([main])
        length = injector.elapsed
        await self.check(world, SweepRun(tick, injector.hit, _outcome(main)))
        loop.on_tick = None
        _refuse_leftovers()
        return length, injector.hit

    def _chosen(self, world: W, main: asyncio.Task[Any]) -> asyncio.Task[Any] | None:
        return main if self.victim is None else self.victim(world)

    def refuse_reports(self, when: str) -> None:
        if self.reports:
            report = self.reports[0]
            raise AssertionError(f"the loop reported {when}: {report['message']}") from report.get("exception")


class _Injector:
    """Counts the ticks of one run from its start, cancels at the given ones, and ends a run that does not end."""

    def __init__(
        self,
        loop: VirtualLoop,
        tick: int | None,
        cancels: int,
        max_ticks: int,
        chosen: Callable[[], asyncio.Task[Any] | None],
    ) -> None:
        self._loop = loop
        self._start = loop.ticks
        self._ticks = range(0) if tick is None else range(tick, tick + cancels)
        self._max_ticks = max_ticks
        self._chosen = chosen
        self.hit = False
        loop.on_tick = self._on_tick

    @property
    def elapsed(self) -> int:
        return self._loop.ticks - self._start

    def _on_tick(self, _number: int) -> None:
        if self.elapsed in self._ticks and (task := self._chosen()) is not None:
            self.hit |= task.cancel()
        if self.elapsed > self._max_ticks:
            self._loop.on_tick = None
            raise Stuck(f"the run did not end within {self._max_ticks} ticks")


def _outcome(main: asyncio.Task[Any]) -> object:
    if main.cancelled():
        return asyncio.CancelledError()
    error = main.exception()
    return main.result() if error is None else error


def _refuse_leftovers() -> None:
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if left:
        raise AssertionError(f"tasks are left after the run: {', '.join(sorted(left))}")
