"""Direct hand-over and the strict semaphore: the ways in which waiting goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stagewire.testing import run_virtual
from stagewire_csp import Outcome, Permits, ResourceEnvelope, Slots
from stagewire_csp.waiting import SLACK, WaitQueue

Settle = Callable[[], Coroutine[Any, Any, None]]
Suspends = Callable[[Coroutine[Any, Any, Any]], bool]


def make_queue() -> tuple[WaitQueue[str], list[str]]:
    undone: list[str] = []
    return WaitQueue[str](undone.append), undone


def test_csp13_who_waits_is_served_in_the_order_of_arrival(settled: Settle) -> None:
    async def main() -> None:
        queue, _ = make_queue()
        tasks = [asyncio.create_task(queue.wait()) for _ in range(3)]
        await settled()
        for thing in "abc":
            assert queue.hand(thing)
        assert not queue.hand("d")
        assert await asyncio.gather(*tasks) == ["a", "b", "c"]

    run_virtual(main())


def test_csp_trap_notify_n_loses_no_wakeup(settled: Settle) -> None:
    """Two are served and one of them is cancelled in that tick: the third gets what that one was given."""

    async def main() -> None:
        permits = Permits("physical", 2)
        await permits.acquire()
        await permits.acquire()
        waiters = [asyncio.create_task(permits.acquire()) for _ in range(3)]
        await settled()
        permits.release()
        permits.release()
        waiters[0].cancel()
        await settled()
        assert waiters[0].cancelled()
        assert [waiter.done() for waiter in waiters] == [True, True, True]
        assert permits.held == 2

    run_virtual(main())


def test_csp_trap_wait_for_swallows_a_cancel_and_we_do_not(settled: Settle) -> None:
    """A waiter that was served and cancelled in one tick ends cancelled, and holds nothing."""

    async def main() -> None:
        permits = Permits("physical", 1)
        await permits.acquire()

        async def guarded() -> None:
            async with asyncio.timeout(60):
                await permits.acquire()

        waiter = asyncio.create_task(guarded())
        await settled()
        permits.release()
        waiter.cancel()
        await settled()
        assert waiter.cancelled()
        assert permits.free == 1

    run_virtual(main())


def test_csp6_a_cancelled_waiter_is_passed_over_before_it_has_unwound(settled: Settle) -> None:
    async def main() -> None:
        queue, undone = make_queue()
        tasks = [asyncio.create_task(queue.wait()) for _ in range(2)]
        await settled()
        tasks[0].cancel()
        assert queue.waiting == 2  # the cancelled one counts until it has unwound
        assert queue.ready()
        assert queue.hand("a")
        assert await tasks[1] == "a"
        assert (queue.waiting, undone) == (0, [])

    run_virtual(main())


def test_csp6_what_was_handed_and_not_taken_is_given_back(settled: Settle) -> None:
    async def main() -> None:
        queue, undone = make_queue()
        task = asyncio.create_task(queue.wait())
        await settled()
        queue.hand("a")
        task.cancel()
        await settled()
        assert undone == ["a"]
        assert queue.waiting == 0

    run_virtual(main())


def test_csp6_a_wait_that_failed_gives_nothing_back_and_leaves_no_unread_error(settled: Settle) -> None:
    async def main() -> None:
        queue, undone = make_queue()
        tasks = [asyncio.create_task(queue.wait()) for _ in range(2)]
        await settled()
        queue.fail(lambda: ValueError("over"))
        tasks[0].cancel()  # in the same tick: its future's error is never awaited
        await settled()
        assert tasks[0].cancelled()
        assert isinstance(tasks[1].exception(), ValueError)
        assert (undone, queue.waiting) == ([], 0)

    run_virtual(main())


def test_csp13_cancelled_waiters_leave_nothing_behind(settled: Settle) -> None:
    async def main() -> None:
        queue, _ = make_queue()
        stays = asyncio.create_task(queue.wait())
        await settled()
        for _ in range(1_000):
            task = asyncio.create_task(queue.wait())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
        await settled()
        assert queue.waiting == 1
        assert len(queue._queue) <= 2 + SLACK + 1
        queue.hand("a")
        assert await stays == "a"

    run_virtual(main())


def test_csp6_a_coroutine_that_is_closed_while_it_waits_leaves_the_line() -> None:
    async def main() -> None:
        queue, undone = make_queue()
        wait = queue.wait()
        wait.send(None)
        wait.close()
        assert (queue.waiting, queue.ready(), undone) == (0, False, [])

    run_virtual(main())


def test_csp13_one_that_was_served_in_vain_waits_again_at_the_head(settled: Settle) -> None:
    async def main() -> None:
        queue, _ = make_queue()
        second = asyncio.create_task(queue.wait(since=2))
        await settled()
        first = asyncio.create_task(queue.wait(since=1, first=True))
        await settled()
        assert queue.first_since == 1
        queue.hand("a")
        queue.hand("b")
        assert (await first, await second) == ("a", "b")
        assert queue.first_since is None

    run_virtual(main())


def test_csp1_a_permit_is_not_released_above_its_cap() -> None:
    async def main() -> None:
        permits = Permits("physical", 1)
        with pytest.raises(ValueError, match="released more often than acquired"):
            permits.release()
        await permits.acquire()
        permits.release()
        with pytest.raises(ValueError, match="physical"):
            permits.release()
        assert permits.free == 1

    run_virtual(main())


def test_csp13_nobody_overtakes_a_waiting_worker(settled: Settle) -> None:
    async def main() -> None:
        permits = Permits("physical", 1)
        await permits.acquire()
        waiter = asyncio.create_task(permits.acquire())
        await settled()
        permits.release()  # it is the waiter's from now on, although the waiter has not run yet
        newcomer = asyncio.create_task(permits.acquire())
        await settled()
        assert waiter.done()
        assert not newcomer.done()
        permits.release()
        await newcomer
        assert permits.held == 1

    run_virtual(main())


def test_csp_trap_leaving_a_permit_never_suspends(does_suspend: Suspends) -> None:
    permits = Permits("physical", 1)
    assert not does_suspend(permits.__aenter__())
    assert permits.held == 1
    assert not does_suspend(permits.__aexit__(None, None, None))
    assert permits.held == 0


def test_csp_trap_a_second_cancel_in_a_permits_exit_hides_no_error(settled: Settle) -> None:
    async def main() -> None:
        permits = Permits("physical", 1)

        async def work() -> None:
            async with permits:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    asyncio.current_task().cancel()  # type: ignore[union-attr]
                    raise ValueError("from the body") from None

        task = asyncio.create_task(work())
        await settled()
        task.cancel()
        with pytest.raises(ValueError, match="from the body"):
            await task
        assert permits.free == 1

    run_virtual(main())


def test_csp1_a_slot_is_not_settled_above_the_cap() -> None:
    async def main() -> None:
        slots = Slots("t", 1, lambda: 0.0)
        envelope = await ResourceEnvelope.create_with_slot("a", slots)
        slots.release()
        with pytest.raises(ValueError, match="t: released more often than acquired"):
            envelope.release(Outcome.CONSUMED)
        assert (slots.free, slots.consumed) == (1, 0)

    run_virtual(main())


@pytest.mark.parametrize("cap", [0, -1])
def test_csp9_a_cap_below_one_is_refused(cap: int) -> None:
    with pytest.raises(ValueError, match="would let nothing through"):
        Permits("physical", cap)


def test_csp14_a_resource_that_gives_up_waiting_for_its_slot_is_written_off(settled: Settle) -> None:
    async def main() -> None:
        fates: list[tuple[object, str]] = []
        slots = Slots("t", 1, lambda: 0.0, lambda resource, outcome: fates.append((resource, str(outcome))))
        await ResourceEnvelope.create_with_slot("a", slots)
        waiter = asyncio.create_task(ResourceEnvelope.create_with_slot("b", slots))
        await settled()
        assert (slots.produced, slots.held, slots.waiting) == (2, 1, 1)
        waiter.cancel()
        await settled()
        assert (slots.waiting, slots.written_off, fates) == (0, 1, [("b", "written_off")])

    run_virtual(main())


def test_csp14_an_observer_that_raises_does_not_break_the_books() -> None:
    async def main() -> None:
        reports: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, report: reports.append(report["message"]))

        def broken(_resource: object, _outcome: object) -> None:
            raise RuntimeError("no")

        slots = Slots("t", 1, lambda: 0.0, broken)
        envelope = await ResourceEnvelope.create_with_slot("a", slots)
        envelope.release(Outcome.CONSUMED)
        assert (slots.free, slots.consumed) == (1, 1)
        assert reports == ["on_settled of side 't' failed"]

    run_virtual(main())


def test_permits_say_what_they_are() -> None:
    assert repr(Permits("physical", 2)) == "<Permits physical: 0 of 2 held, 0 waiting>"
