"""The cancel sweep: what it visits, what it finds, and that it finds the same each time."""

from __future__ import annotations

import asyncio
import gc
import itertools

import pytest

from stagewire.testing import Stuck, SweepRun, VirtualLoop, run_virtual, sweep_cancels


class World:
    def __init__(self) -> None:
        self.held = 0
        self.helper: asyncio.Task[None] | None = None


async def no_check(_world: World, _run: SweepRun) -> None: ...


async def careful(world: World) -> str:
    world.held += 1
    try:
        for _ in range(5):
            await asyncio.sleep(1)
    finally:
        world.held -= 1
    return "done"


async def careless(world: World) -> None:
    world.held += 1
    await asyncio.sleep(1)
    world.held -= 1


async def check_nothing_held(world: World, _run: SweepRun) -> None:
    assert world.held == 0


def test_every_tick_is_visited_once_and_every_cancel_hits() -> None:
    runs: list[SweepRun] = []

    async def note(_world: World, run: SweepRun) -> None:
        runs.append(run)

    result = sweep_cancels(World, careful, note)
    assert result.ticks >= 11, "five sleeps: one tick to sleep, one to wake"
    assert [run.tick for run in runs] == [None, *range(1, result.ticks + 1)]
    assert runs[0].outcome == "done"
    assert all(isinstance(run.outcome, asyncio.CancelledError) for run in runs if run.hit)
    assert result.hits == sum(run.hit for run in runs) >= result.ticks - 2


def test_two_sweeps_do_the_same() -> None:
    def trace() -> list[tuple[int | None, bool, str]]:
        seen: list[tuple[int | None, bool, str]] = []

        async def note(_world: World, run: SweepRun) -> None:
            seen.append((run.tick, run.hit, repr(run.outcome)))

        sweep_cancels(World, careful, note)
        return seen

    assert trace() == trace()


def test_a_good_program_passes() -> None:
    sweep_cancels(World, careful, check_nothing_held, cancels=2)


def test_a_broken_invariant_is_found_and_the_tick_is_named() -> None:
    with pytest.raises(AssertionError) as caught:
        sweep_cancels(World, careless, check_nothing_held)
    assert caught.value.__notes__ == ["in the run cancelled at tick 2"]


def test_a_task_left_behind_is_found() -> None:
    async def scenario(world: World) -> None:
        world.helper = asyncio.create_task(asyncio.sleep(1000), name="forgotten")
        await asyncio.sleep(1)
        world.helper.cancel()
        await asyncio.wait([world.helper])

    with pytest.raises(AssertionError, match="forgotten"):
        sweep_cancels(World, scenario, no_check)


def test_an_exception_that_nobody_retrieved_is_found() -> None:
    async def fail() -> None:
        raise ValueError("unseen")

    async def scenario(_world: World) -> None:
        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task

    with pytest.raises(AssertionError, match="never retrieved"):
        sweep_cancels(World, scenario, no_check)


def test_an_exception_that_only_the_garbage_collector_finds_is_found() -> None:
    async def fail() -> None:
        raise ValueError("unseen")

    async def scenario(_world: World) -> None:
        cycle: list[object] = [asyncio.create_task(fail())]
        cycle.append(cycle)
        await asyncio.sleep(1)

    gc.disable()
    try:
        with pytest.raises(AssertionError, match="never retrieved"):
            sweep_cancels(World, scenario, no_check)
    finally:
        gc.enable()


def test_another_task_can_be_the_victim() -> None:
    async def scenario(world: World) -> str:
        world.helper = asyncio.create_task(asyncio.sleep(5))
        await asyncio.wait([world.helper])
        return "unharmed"

    async def check(_world: World, run: SweepRun) -> None:
        assert run.outcome == "unharmed"

    result = sweep_cancels(World, scenario, check, victim=lambda world: world.helper)
    assert 0 < result.hits < result.ticks


def test_a_second_cancel_finds_cleanup_that_does_not_stand_it() -> None:
    async def clean_up(world: World) -> None:
        await asyncio.sleep(1)
        world.held -= 1

    async def scenario(world: World) -> None:
        world.held += 1
        cleanup = asyncio.create_task(clean_up(world))
        try:
            await asyncio.shield(cleanup)
        except asyncio.CancelledError:
            await cleanup

    sweep_cancels(World, scenario, check_nothing_held)
    with pytest.raises(AssertionError):
        sweep_cancels(World, scenario, check_nothing_held, cancels=2)


def test_a_deadlock_after_a_cancel_is_found() -> None:
    async def scenario(_world: World) -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    with pytest.raises(Stuck, match="deadlock") as caught:
        sweep_cancels(World, scenario, no_check)
    assert "tick" in caught.value.__notes__[0]


def test_a_run_that_goes_on_for_ever_is_ended() -> None:
    async def scenario(_world: World) -> None:
        for second in itertools.count():
            await asyncio.sleep(second)

    with pytest.raises(Stuck, match="50 ticks"):
        sweep_cancels(World, scenario, no_check, max_ticks=50)


def test_the_virtual_loop_calls_its_hook_at_each_tick() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        ticks: list[int] = []
        loop.on_tick = ticks.append
        first = loop.ticks
        for _ in range(3):
            await asyncio.sleep(0)
        loop.on_tick = None
        assert ticks == [first + 1, first + 2, first + 3]
        return ticks

    assert run_virtual(main())
