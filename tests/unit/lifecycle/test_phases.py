from __future__ import annotations

import asyncio

import pytest

from stagewire.lifecycle import PhaseFailed, Phases, Step
from stagewire.testing import SweepRun, run_virtual, sweep_cancels


class Recorder:
    """Makes steps that note when they begin and end, and fail as often as they are told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.failures: dict[str, int] = {}
        self.at_once = 0

    def step(self, name: str, seconds: float = 1) -> tuple[str, Step]:
        async def act() -> None:
            self.begun.append(name)
            self.at_once += 1
            try:
                assert self.at_once == 1, "two steps at once"
                await asyncio.sleep(seconds)
                if self.failures.get(name, 0):
                    self.failures[name] -= 1
                    raise OSError(f"{name} is stuck")
            finally:
                self.at_once -= 1
            self.ended.append(name)

        return name, act


def now() -> float:
    return asyncio.get_running_loop().time()


def test_sd5_steps_are_done_in_order_each_once() -> None:
    async def main() -> None:
        recorder = Recorder()
        phases = Phases("demo", [recorder.step(name) for name in "abc"])
        assert list(phases.remaining) == ["a", "b", "c"]
        await phases.run()
        await phases.run()
        assert recorder.begun == recorder.ended == ["a", "b", "c"]
        assert phases.done == ("a", "b", "c")
        assert not phases.remaining

    run_virtual(main())


def test_sd5_after_a_failure_the_next_run_goes_on_there_and_repeats_none() -> None:
    async def main() -> None:
        recorder = Recorder()
        recorder.failures = {"b": 2}
        phases = Phases("demo", [recorder.step(name) for name in "abc"])
        for _ in range(2):
            with pytest.raises(PhaseFailed, match="demo: step 'b' failed: OSError: b is stuck") as caught:
                await phases.run()
            assert isinstance(caught.value.__cause__, OSError)
            assert caught.value.step == "b"
            assert phases.done == ("a",)
            assert phases.failure is not None
        await phases.run()
        assert recorder.begun == ["a", "b", "b", "b", "c"]
        assert phases.failure is None

    run_virtual(main())


def test_sd5_cancelling_the_caller_leaves_the_step_at_work_and_the_next_call_joins_it() -> None:
    async def main() -> None:
        recorder = Recorder()
        phases = Phases("demo", [recorder.step("a", 10), recorder.step("b", 1)])
        caller = asyncio.create_task(phases.run())
        await asyncio.sleep(4)
        caller.cancel()
        await asyncio.wait([caller])
        assert caller.cancelled()
        await phases.run()
        assert now() == 11, "the step was not begun anew"
        assert recorder.begun == recorder.ended == ["a", "b"]

    run_virtual(main())


def test_sd5_a_step_that_ends_with_no_caller_counts() -> None:
    async def main() -> None:
        recorder = Recorder()
        phases = Phases("demo", [recorder.step("a", 10), recorder.step("b", 1)])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(4):
                await phases.run()
        await asyncio.sleep(100)
        assert phases.done == ("a",), "the step ended; the next was not begun, for nobody asks"
        await phases.run()
        assert recorder.begun == ["a", "b"]

    run_virtual(main())


def test_sd5_a_step_that_fails_with_no_caller_is_kept_and_tried_again() -> None:
    async def main() -> None:
        recorder = Recorder()
        recorder.failures = {"a": 1}
        phases = Phases("demo", [recorder.step("a", 10)])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(4):
                await phases.run()
        await asyncio.sleep(100)
        assert phases.failure is not None
        assert "a is stuck" in str(phases.failure)
        await phases.run()
        assert recorder.begun == ["a", "a"]

    run_virtual(main())


def test_sd5_concurrent_callers_share_each_step_and_its_failure() -> None:
    async def main() -> None:
        recorder = Recorder()
        recorder.failures = {"b": 1}
        phases = Phases("demo", [recorder.step(name) for name in "ab"])
        outcomes = await asyncio.gather(phases.run(), phases.run(), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [PhaseFailed, PhaseFailed]
        await asyncio.gather(phases.run(), phases.run())
        assert recorder.begun == ["a", "b", "b"]

    run_virtual(main())


def test_sd5_a_step_that_is_itself_cancelled_has_failed_and_its_caller_was_not_cancelled() -> None:
    async def main() -> None:
        async def give_up() -> None:
            raise asyncio.CancelledError

        phases = Phases("demo", [("a", give_up)])
        with pytest.raises(PhaseFailed, match="the step was cancelled"):
            await phases.run()

    run_virtual(main())


def test_sd5_a_step_that_runs_its_own_phases_is_told_so() -> None:
    async def main() -> None:
        async def recurse() -> None:
            await phases.run()

        phases = Phases("demo", [("a", recurse)])
        with pytest.raises(PhaseFailed, match="'a' would wait for itself"):
            await phases.run()

    run_virtual(main())


def test_sd5_a_cancel_at_any_tick_loses_no_handle_and_repeats_no_step() -> None:
    class World(Recorder):
        def __init__(self) -> None:
            super().__init__()
            self.phases = Phases("demo", [self.step(name, seconds) for name, seconds in (("a", 1), ("b", 0), ("c", 2))])

    async def scenario(world: World) -> None:
        await world.phases.run()

    async def check(world: World, _run: SweepRun) -> None:
        await world.phases.run()
        assert world.begun == world.ended == ["a", "b", "c"]

    result = sweep_cancels(World, scenario, check, cancels=2)
    assert result.hits >= result.ticks - 2


def test_sd5_a_cancel_at_any_tick_of_a_failing_step_keeps_the_progress() -> None:
    class World(Recorder):
        def __init__(self) -> None:
            super().__init__()
            self.failures = {"b": 1}
            self.phases = Phases("demo", [self.step(name) for name in "abc"])

    async def scenario(world: World) -> None:
        await world.phases.run()

    async def check(world: World, _run: SweepRun) -> None:
        while world.phases.remaining:
            try:
                await world.phases.run()
            except PhaseFailed:
                continue
        assert world.ended == ["a", "b", "c"]
        assert world.begun == ["a", "b", "b", "c"]

    assert sweep_cancels(World, scenario, check).hits
