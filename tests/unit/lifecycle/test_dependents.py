from __future__ import annotations

import asyncio

import pytest

from stagewire import Closed
from stagewire.lifecycle import AttemptFailed, Closer, Dependents, DependentsFailed, Finished, Pending
from stagewire.testing import SweepRun, run_virtual, sweep_cancels


def now() -> float:
    return asyncio.get_running_loop().time()


def test_sd4_a_framework_waits_for_each_acknowledgement() -> None:
    async def main() -> None:
        framework = Dependents("kv")
        for name, seconds in (("a", 2), ("b", 5)):
            asyncio.get_running_loop().call_later(seconds, framework.register(name).finished)
        stopped = asyncio.create_task(framework.stopped("bye"))
        await asyncio.sleep(3)
        assert list(framework.waiting_for) == ["b"]
        await stopped
        assert now() == 5
        assert not framework.waiting_for

    run_virtual(main())


def test_sd4_a_request_that_comes_before_its_waiter_is_not_lost() -> None:
    async def main() -> None:
        framework = Dependents("kv")
        dependent = framework.register("fs")
        framework.request("bye")
        await asyncio.sleep(10)
        assert await dependent.requested() == "bye"
        assert now() == 10, "at once"

    run_virtual(main())


def test_sd4_an_acknowledgement_that_comes_before_its_waiter_is_not_lost() -> None:
    async def main() -> None:
        framework = Dependents("kv")
        framework.register("fs").finished()
        await framework.stopped("bye")
        assert now() == 0

    run_virtual(main())


def test_sd4_the_state_is_kept() -> None:
    dependent = Dependents("kv").register("fs")
    states: list[object] = [dependent.attempts.state]
    first, second = ValueError("first"), ValueError("second")
    dependent.failed(first)
    states.append(dependent.attempts.state)
    dependent.failed(second)
    states.append(dependent.attempts.state)
    dependent.finished()
    dependent.finished()
    dependent.failed(first)
    states.append(dependent.attempts.state)
    assert states == [Pending(), AttemptFailed(1, first), AttemptFailed(2, second), Finished(3)]


def test_sd4_a_failure_is_named_and_the_framework_stays_up() -> None:
    async def main() -> None:
        framework = Dependents("kv")
        bad, good = framework.register("bad"), framework.register("good")
        asyncio.get_running_loop().call_later(1, bad.failed, ValueError("disk is full"))
        asyncio.get_running_loop().call_later(2, good.finished)
        with pytest.raises(DependentsFailed, match=r"kv stays up.* bad: ValueError: disk is full") as caught:
            await framework.stopped("bye")
        assert [name for name, _error in caught.value.failures] == ["bad"]
        assert now() == 2, "each was heard"

    run_virtual(main())


def test_sd4_a_later_attempt_is_not_answered_with_an_old_failure() -> None:
    async def main() -> None:
        framework = Dependents("kv")
        dependent = framework.register("fs")
        dependent.failed(ValueError("before anybody asked"))
        asyncio.get_running_loop().call_later(1, dependent.failed, ValueError("first answer"))
        asyncio.get_running_loop().call_later(2, dependent.finished)
        with pytest.raises(DependentsFailed, match="first answer"):
            await framework.stopped("bye")
        await framework.stopped("bye again")
        assert now() == 2
        assert await dependent.requested() == "bye", "the first reason is kept"

    run_virtual(main())


def test_sd4_nobody_can_depend_on_what_is_stopping() -> None:
    framework = Dependents("kv")
    framework.request("bye")
    framework.request("bye again")
    with pytest.raises(Closed, match=r"kv is stopping \(bye\): 'late' cannot depend on it"):
        framework.register("late")


def test_sd4_a_dependent_that_has_stopped_is_let_go_of() -> None:
    framework = Dependents("kv")
    for number in range(100):
        framework.register(f"session {number}").finished()
    assert len(framework._participants) <= 1


def test_sd4_a_dependent_serves_the_request_until_it_succeeds() -> None:
    async def main() -> None:
        framework, calls = Dependents("kv"), []
        dependent = framework.register("fs")

        async def stop() -> None:
            calls.append(now())
            if len(calls) < 3:
                raise OSError("not yet")

        server = asyncio.create_task(dependent.serve(stop))
        await asyncio.sleep(1)
        assert not calls, "not before it is asked"
        for attempt in (1, 2):
            with pytest.raises(DependentsFailed, match="not yet"):
                await framework.stopped("bye")
            assert dependent.attempts.number == attempt
        await framework.stopped("bye")
        assert calls == pytest.approx([1, 1.1, 1.2])
        await server

    run_virtual(main())


def test_sd4_a_closer_can_be_the_dependent() -> None:
    async def main() -> None:
        framework, order = Dependents("kv"), []

        async def close_fs() -> None:
            order.append("fs")

        framework.add(Closer(close_fs, name="fs"))
        await framework.stopped("bye")
        order.append("kv")
        assert order == ["fs", "kv"]

    run_virtual(main())


def test_sd4_a_cancelled_framework_leaves_its_dependents_at_work() -> None:
    class World:
        def __init__(self) -> None:
            self.framework = Dependents("kv")
            self.stops = 0
            self.closer = Closer(self.stop, name="fs")
            self.framework.add(self.closer)

        async def stop(self) -> None:
            await asyncio.sleep(1)
            self.stops += 1

    async def scenario(world: World) -> None:
        await world.framework.stopped("bye")

    async def check(world: World, _run: SweepRun) -> None:
        await world.framework.stopped("again")
        assert world.stops == 1
        assert not world.framework.waiting_for
        await asyncio.sleep(0)

    assert sweep_cancels(World, scenario, check).hits
