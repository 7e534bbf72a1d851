from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stagewire.lifecycle import ForcedStop, StopSignal, stop_on_signals
from stagewire.testing import SweepRun, run_virtual, sweep_cancels


@pytest.fixture(autouse=True)
def before() -> Iterator[list[int]]:
    """Handlers that note what reaches them: what was installed before the code under test."""
    caught: list[int] = []
    previous = {number: signal.signal(number, lambda number, _frame: caught.append(number)) for number in STOPS}
    yield caught
    for number, handler in previous.items():
        signal.signal(number, handler)


STOPS = (signal.SIGTERM, signal.SIGINT)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("number", STOPS)
def test_sd8_a_signal_runs_the_stop_path_and_the_block_ends_by_itself(
    number: signal.Signals, before: list[int]
) -> None:
    async def main() -> None:
        stop = StopSignal()
        async with stop_on_signals(stop.set) as stopping:
            signal.raise_signal(number)
            assert await stop.wait() == number.name
            await asyncio.sleep(20)
        assert stopping.signal is number
        assert not stopping.forced
        assert now() == 20
        await asyncio.sleep(100)
        assert not stopping.forced, "the deadline ends with the block"

    run_virtual(main())
    assert not before


def test_sd8_without_a_signal_nothing_happens() -> None:
    async def main() -> None:
        stop = StopSignal()
        async with stop_on_signals(stop.set) as stopping:
            await asyncio.sleep(1000)
        assert (stopping.signal, stopping.forced, stop.is_set) == (None, False, False)

    run_virtual(main())


def test_sd8_the_previous_handlers_come_back(before: list[int]) -> None:
    async def main() -> None:
        async with stop_on_signals(lambda _reason: None):
            pass
        for number in STOPS:
            signal.raise_signal(number)

    run_virtual(main())
    assert before == list(STOPS)


def test_sd8_a_second_signal_within_the_deadline_says_what_is_being_waited_for(book: Any) -> None:
    async def main() -> None:
        stop, told = StopSignal(), list[str]()
        async with stop_on_signals(
            stop.set, deadline=30, waiting_for=lambda: "stage tone, 3 requests", tell=told.append, log=book.log
        ) as stopping:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(5)
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(5)
        assert (stopping.signal, stopping.forced) == (signal.SIGTERM, False)
        assert told == [
            "SIGTERM: stopping, for at most 30 s; once more says what it is waiting for",
            "SIGINT: still waiting for stage tone, 3 requests",
        ]

    run_virtual(main())
    assert book.lines("stop.requested")[0]["signal"] == "SIGTERM"
    assert book.lines("stop.waiting")[0]["waiting_for"] == "stage tone, 3 requests"


def test_sd8_after_the_deadline_the_end_is_forced(book: Any) -> None:
    async def main() -> None:
        cleaned: list[float] = []
        block = stop_on_signals(StopSignal().set, deadline=30, waiting_for=lambda: "stage tone", log=book.log)

        async def work() -> None:
            async with block:
                signal.raise_signal(signal.SIGTERM)
                try:
                    await asyncio.Event().wait()
                finally:
                    cleaned.append(now())

        with pytest.raises(ForcedStop, match="30 s after SIGTERM, still waiting for stage tone") as caught:
            await work()
        assert cleaned == [30]
        assert block.forced
        assert (caught.value.signal, caught.value.waited_for) == (signal.SIGTERM, "stage tone")
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling(), "the cancel was ours and is used up"

    run_virtual(main())
    assert book.lines("stop.forced")[0]["waiting_for"] == "stage tone"


def test_sd8_once_forced_a_signal_has_its_former_effect(before: list[int]) -> None:
    async def main() -> None:
        async with stop_on_signals(lambda _reason: None, deadline=1):
            signal.raise_signal(signal.SIGTERM)
            try:
                await asyncio.Event().wait()
            finally:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(ForcedStop):
        run_virtual(main())
    assert before == [signal.SIGINT]


def test_sd8_a_block_that_ends_all_the_same_when_forced_keeps_its_result() -> None:
    async def main() -> str:
        async with stop_on_signals(lambda _reason: None, deadline=1) as stopping:
            signal.raise_signal(signal.SIGTERM)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                result = "partial"
        assert stopping.forced
        await asyncio.sleep(1)
        return result

    assert run_virtual(main()) == "partial"


def test_sd8_an_error_of_the_block_is_not_hidden_by_the_force() -> None:
    async def main() -> None:
        async with stop_on_signals(lambda _reason: None, deadline=1):
            signal.raise_signal(signal.SIGTERM)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("the real trouble") from None

    with pytest.raises(ValueError, match="the real trouble"):
        run_virtual(main())


def test_sd8_a_cancel_from_elsewhere_is_not_taken_for_the_force() -> None:
    async def main() -> None:
        async def block() -> None:
            async with stop_on_signals(lambda _reason: None, deadline=1):
                signal.raise_signal(signal.SIGTERM)
                await asyncio.Event().wait()

        task = asyncio.create_task(block())
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

        both = asyncio.create_task(block())
        asyncio.get_running_loop().call_later(1, both.cancel)
        await asyncio.wait([both])
        assert both.cancelled(), "forced and cancelled in the same moment: the canceller gets its way"

    run_virtual(main())


def test_sd8_a_stop_path_that_cannot_say_what_it_waits_for_still_stops() -> None:
    told: list[str] = []

    async def main() -> None:
        async with stop_on_signals(lambda _reason: None, deadline=1, waiting_for=lambda: str(1 // 0), tell=told.append):
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0.5)
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()

    with pytest.raises(ForcedStop, match="cannot be said: ZeroDivisionError"):
        run_virtual(main())
    assert "cannot be said" in told[1]


def test_sd8_a_signal_that_comes_as_the_block_is_left_is_known() -> None:
    async def main() -> None:
        stop, reports = StopSignal(), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, report: reports.append(report))
        async with stop_on_signals(stop.set) as stopping:
            signal.raise_signal(signal.SIGTERM)
        assert stopping.signal is signal.SIGTERM
        await asyncio.sleep(1)
        assert reports == []
        assert not stop.is_set, "there is nothing left to stop"

    run_virtual(main())


def test_sd8_blocks_nest_and_the_inner_one_takes_the_signal(before: list[int]) -> None:
    async def main() -> None:
        outer_stop, inner_stop = StopSignal(), StopSignal()
        async with stop_on_signals(outer_stop.set) as outer:
            async with stop_on_signals(inner_stop.set) as inner:
                signal.raise_signal(signal.SIGTERM)
                await inner_stop.wait()
            assert outer.signal is None
            signal.raise_signal(signal.SIGINT)
            assert await outer_stop.wait() == "SIGINT"
        assert inner.signal is signal.SIGTERM

    run_virtual(main())
    assert not before


def test_sd8_outside_the_main_thread_it_does_nothing(before: list[int]) -> None:
    outcomes: list[object] = []

    async def main() -> None:
        async with stop_on_signals(lambda _reason: None) as stopping:
            await asyncio.sleep(1)
        outcomes.append(stopping.signal)

    handlers = [signal.getsignal(number) for number in STOPS]
    thread = threading.Thread(target=run_virtual, args=(main(),))
    thread.start()
    thread.join()
    assert outcomes == [None]
    assert [signal.getsignal(number) for number in STOPS] == handlers


def test_sd8_a_signal_wakes_a_loop_that_waits_for_nothing_else() -> None:
    async def main() -> str:
        stop = StopSignal()
        async with stop_on_signals(stop.set):
            killer = threading.Timer(0.05, os.kill, args=(os.getpid(), signal.SIGTERM))
            killer.start()
            reason = await stop.wait()
            killer.join()
        return reason

    assert asyncio.run(main()) == "SIGTERM"


def test_sd8_the_handlers_come_back_after_a_cancel_at_any_tick(before: list[int]) -> None:
    handlers = [signal.getsignal(number) for number in STOPS]

    async def scenario(stop: StopSignal) -> None:
        async with stop_on_signals(stop.set, deadline=5):
            await asyncio.sleep(1)
            signal.raise_signal(signal.SIGTERM)
            await asyncio.Event().wait()

    async def check(_stop: StopSignal, run: SweepRun) -> None:
        assert [signal.getsignal(number) for number in STOPS] == handlers
        assert isinstance(run.outcome, asyncio.CancelledError if run.hit else ForcedStop)

    assert sweep_cancels(StopSignal, scenario, check).hits
