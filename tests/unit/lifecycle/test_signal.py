from __future__ import annotations

import asyncio
import threading

import pytest

from stagewire.lifecycle import StopSignal
from stagewire.testing import SweepRun, run_virtual, sweep_cancels


def test_sd1_a_waiter_that_comes_after_the_stop_sees_it() -> None:
    async def main() -> None:
        stop = StopSignal()
        stop.set("enough")
        assert await stop.wait() == "enough"
        assert stop.is_set

    run_virtual(main())


def test_sd1_waiters_are_woken() -> None:
    async def main() -> None:
        stop = StopSignal()
        waiters = [asyncio.create_task(stop.wait()) for _ in range(3)]
        await asyncio.sleep(1)
        assert not stop.is_set
        assert stop.reason is None
        stop.set("enough")
        assert await asyncio.gather(*waiters) == ["enough"] * 3

    run_virtual(main())


def test_sd1_the_first_reason_wins() -> None:
    stop = StopSignal()
    assert stop.set("first")
    assert not stop.set("second")
    assert stop.reason == "first"


def test_sd1_a_cancelled_waiter_leaves_nothing_behind_and_wakes_nobody() -> None:
    async def main() -> None:
        stop = StopSignal()
        gone, stays = asyncio.create_task(stop.wait()), asyncio.create_task(stop.wait())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        assert len(stop._waiters) == 1
        stop.set("enough")
        assert await stays == "enough"
        assert not stop._waiters

    run_virtual(main())


def test_sd1_a_thread_can_set_it_for_a_loop() -> None:
    async def main() -> str:
        stop = StopSignal()
        waiter = asyncio.create_task(stop.wait())
        await asyncio.sleep(0)
        await asyncio.to_thread(stop.set, "from a thread")
        return await waiter

    assert asyncio.run(main()) == "from a thread"


def test_sd1_several_loops_and_threads_wait_for_the_same_signal() -> None:
    stop, reasons, ready = StopSignal(), [], threading.Barrier(5)

    async def main() -> None:
        waiter = asyncio.create_task(stop.wait())
        await asyncio.sleep(0)
        ready.wait()
        reasons.append(await waiter)

    def block() -> None:
        ready.wait()
        assert stop.wait_blocking()
        reasons.append(str(stop.reason))

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(2)]
    threads += [threading.Thread(target=block) for _ in range(2)]
    for thread in threads:
        thread.start()
    ready.wait()
    stop.set("enough")
    for thread in threads:
        thread.join()
    assert reasons == ["enough"] * 4


class LockTakenLate:
    """Lets another thread set the signal between a waiter's look at it and the waiter's lock."""

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._first = True

    def __enter__(self) -> None:
        if self._first:
            self._first = False
            setter = threading.Thread(target=self._stop.set, args=("in between",))
            setter.start()
            setter.join()
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


def test_sd1_a_stop_between_a_waiters_look_and_its_registration_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        stop = StopSignal()
        monkeypatch.setattr(stop, "_lock", LockTakenLate(stop))
        assert await stop.wait() == "in between"

    run_virtual(main())


def test_sd1_a_waiter_cancelled_after_a_thread_set_the_signal_disturbs_nobody() -> None:
    async def main() -> None:
        reports: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, report: reports.append(report))
        stop = StopSignal()
        waiter = asyncio.create_task(stop.wait())
        await asyncio.sleep(0)
        setter = threading.Thread(target=stop.set, args=("enough",))
        setter.start()
        setter.join()
        waiter.cancel()
        await asyncio.wait([waiter])
        await asyncio.sleep(0)
        assert reports == []

    asyncio.run(main())


def test_sd1_a_blocking_wait_ends_after_its_timeout() -> None:
    stop = StopSignal()
    assert not stop.wait_blocking(0.0)
    stop.set("enough")
    assert stop.wait_blocking(0.0)


def test_sd1_a_waiter_on_a_loop_that_was_closed_does_not_hinder_others() -> None:
    stop = StopSignal()
    loop = asyncio.new_event_loop()
    abandoned = loop.create_task(stop.wait())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert stop.set("enough")
    abandoned._log_destroy_pending = False  # type: ignore[attr-defined]


def test_sd1_a_cancel_at_any_tick_leaves_no_waiter() -> None:
    async def scenario(stop: StopSignal) -> None:
        asyncio.get_running_loop().call_later(1, stop.set, "enough")
        await stop.wait()

    async def check(stop: StopSignal, _run: SweepRun) -> None:
        assert not stop._waiters
        stop.set("late")
        await stop.wait()

    assert sweep_cancels(StopSignal, scenario, check).hits
