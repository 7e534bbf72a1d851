from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stagewire import Closed, StillHeld
from stagewire.lifecycle import TaskRegistry
from stagewire.testing import SweepRun, run_virtual, sweep_cancels


def now() -> float:
    return asyncio.get_running_loop().time()


async def stubborn(release: asyncio.Event) -> None:
    while not release.is_set():
        try:
            await release.wait()
        except asyncio.CancelledError:
            continue


async def fail(text: str) -> None:
    raise ValueError(text)


def test_sd3_an_admitted_task_is_joined() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")
        task = tasks.spawn(asyncio.sleep(5, "result"), name="sleeper")
        assert len(tasks) == 1
        assert tasks.names == ("sleeper",)
        tasks.close()
        await tasks.join()
        assert now() == 5
        assert task.result() == "result"
        assert len(tasks) == 0

    run_virtual(main())


def test_sd3_after_the_close_none_is_spawned_and_the_coroutine_is_closed() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")
        tasks.close()
        coro = asyncio.sleep(1)
        with pytest.raises(Closed, match=r"demo is closed: task 'late' was not started"):
            tasks.spawn(coro, name="late")
        with pytest.raises(RuntimeError, match="cannot reuse already awaited"):
            coro.send(None)
        assert tasks.closed
        await tasks.join()

    run_virtual(main())


def test_sd3_join_waits_for_tasks_admitted_meanwhile() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")

        async def parent() -> None:
            await asyncio.sleep(1)
            tasks.spawn(asyncio.sleep(5), name="child")

        tasks.spawn(parent(), name="parent")
        await tasks.join()
        assert now() == 6

    run_virtual(main())


def test_sd3_a_registered_task_is_not_collected_while_nobody_else_holds_it() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")
        tasks.spawn(asyncio.sleep(1), name="held by the registry only")
        assert [task.get_name() for task in tasks._tasks] == ["held by the registry only"]
        await tasks.join()
        assert not tasks._tasks, "an ended task is let go of"

    run_virtual(main())


def test_sd3_a_failure_is_reported_once_when_the_task_ends(book: Any) -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo", log=book.log)
        tasks.spawn(fail("broken"), name="unlucky")
        await asyncio.sleep(1)
        (line,) = book.lines("task.failed")
        assert (line["owner"], line["task"], line["cause"]) == ("demo", "unlucky", "ValueError: broken")
        assert line["exception"][0]["exc_type"] == "ValueError"
        await tasks.join()

    run_virtual(main())
    assert len(book.lines("task.failed")) == 1


def test_sd3_a_callback_may_take_failures_instead_of_the_log() -> None:
    async def main() -> None:
        seen: list[tuple[str, str]] = []
        tasks = TaskRegistry("demo", on_failure=lambda task, error: seen.append((task.get_name(), str(error))))
        tasks.spawn(fail("broken"), name="unlucky")
        await tasks.join()
        assert seen == [("unlucky", "broken")]

    run_virtual(main())


def test_sd3_without_a_log_a_failure_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")
        tasks.spawn(fail("broken"), name="unlucky")
        await tasks.join()

    run_virtual(main())
    assert '"event":"task.failed"' in capsys.readouterr().err


def test_sd3_a_failure_that_somebody_awaits_is_left_to_them(book: Any) -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo", log=book.log)
        with pytest.raises(ValueError, match="broken"):
            await tasks.spawn(fail("broken"), name="awaited", report=False)
        assert not len(tasks)

    run_virtual(main())
    assert not book.lines("task.failed")


def test_sd3_a_cancelled_task_is_no_failure(book: Any) -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo", log=book.log)
        for number in range(3):
            tasks.spawn(asyncio.sleep(100), name=f"sleeper {number}")
        await asyncio.sleep(1)
        assert tasks.cancel_all() == 3
        await tasks.join()
        assert now() == 1

    run_virtual(main())
    assert not book.lines("task.failed")


def test_sd3_a_task_cannot_join_its_own_registry() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")
        for wait in (tasks.join, lambda: tasks.drain(1)):
            task = tasks.spawn(wait(), name="selfish", report=False)
            with pytest.raises(RuntimeError, match="'selfish' would wait for itself"):
                await task
        assert not tasks.closed, "refused before anything was done"

    run_virtual(main())


def test_sd3_a_task_that_cancels_all_others_goes_on() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")

        async def reaper() -> int:
            return tasks.cancel_all()

        other = tasks.spawn(asyncio.sleep(100), name="other")
        assert await tasks.spawn(reaper(), name="reaper") == 1
        await tasks.join()
        assert other.cancelled()

    run_virtual(main())


def test_sd3_drain_lets_tasks_end_by_themselves_within_the_grace() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")
        task = tasks.spawn(asyncio.sleep(4, "by itself"), name="quick")
        await tasks.drain(5)
        assert (now(), task.result()) == (4, "by itself")
        assert tasks.closed

    run_virtual(main())


def test_sd3_drain_cancels_what_does_not_end_within_the_grace() -> None:
    async def main() -> None:
        tasks = TaskRegistry("demo")
        task = tasks.spawn(asyncio.sleep(100), name="slow")
        await tasks.drain(5)
        assert now() == 5
        assert task.cancelled()

    run_virtual(main())


def test_sd7_what_does_not_end_stays_registered_and_a_later_drain_takes_it() -> None:
    async def main() -> None:
        tasks, release = TaskRegistry("demo"), asyncio.Event()
        tasks.spawn(stubborn(release), name="stubborn")
        with pytest.raises(StillHeld, match="demo was not released in time; still held: task stubborn") as caught:
            await tasks.drain(5)
        assert caught.value.held == ("task stubborn",)
        assert now() == 10
        assert tasks.names == ("stubborn",)
        asyncio.get_running_loop().call_later(1, release.set)
        await tasks.drain(5)
        assert now() == 11

    run_virtual(main())


def test_sd3_a_cancel_at_any_tick_loses_no_task() -> None:
    class World:
        def __init__(self) -> None:
            self.tasks = TaskRegistry("demo")
            self.started = self.ended = 0

        async def work(self, seconds: float) -> None:
            self.started += 1
            try:
                await asyncio.sleep(seconds)
            finally:
                self.ended += 1

    async def scenario(world: World) -> None:
        for seconds in range(3):
            world.tasks.spawn(world.work(seconds), name=f"work {seconds}")
            await asyncio.sleep(0)
        await world.tasks.drain(1)

    async def check(world: World, _run: SweepRun) -> None:
        world.tasks.close()
        await world.tasks.join()
        assert world.started == world.ended
        assert len(world.tasks) == 0

    assert sweep_cancels(World, scenario, check, cancels=2).hits
