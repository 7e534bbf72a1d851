"""Whole runs: to the end, through failures, to a stop, and past a deadline; the account at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import StagewireError
from stagewire.lifecycle import CloseFailed
from stagewire.testing import run_virtual
from stagewire_csp import Capacity, CspReport, CspRuntime, FailurePolicy, RunSettings

if TYPE_CHECKING:
    from tests.unit.csp.conftest import LogBook, Script

MakeScript = Callable[..., "Script"]
Settle = Callable[[], Coroutine[Any, Any, None]]

CAPACITY = Capacity(physical=2, t_slot=4, q_slot=4, q_pending=6)


def make_runtime(script: Script, book: LogBook, capacity: Capacity = CAPACITY, **settings: Any) -> CspRuntime:
    loop = asyncio.get_running_loop()
    return CspRuntime(
        script,
        script,
        script,
        capacity=capacity,
        settings=RunSettings(**settings),
        clock=loop.time,
        wall=lambda: 1_000_000.0 + loop.time(),
        log=book.log,
    )


def assert_accounted(report: CspReport) -> None:
    """Every T, Q, slot, permit and request (CSP-15)."""
    state = report.state
    for side in (state.t, state.q):
        assert side.produced == side.consumed + side.written_off + side.expired
        assert (side.depth, side.slots.held, side.slots.waiting, side.slots.free) == (0, 0, 0, side.slots.cap)
    for permits in (state.physical, state.q_pending):
        assert (permits.held, permits.waiting, permits.free) == (0, 0, permits.cap)
    requests = state.requests
    assert requests.sent == requests.answered + requests.failed + requests.given_up
    assert state.q.produced == requests.answered
    assert (state.claims, state.reserved) == (0, 0)
    assert report.balanced


def test_csp9_the_workers_are_as_many_as_the_capacity_says(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script()
        runtime = make_runtime(script, book)
        running = asyncio.create_task(runtime.run())
        await asyncio.sleep(0)
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert [sum(name[0] == kind for name in names if name[1:].isdigit()) for kind in "SPC"] == [4, 8, 4]
        assert book.named("csp.started")[0]["reason"] == "explicit"
        runtime.stop()
        assert_accounted(await running)

    run_virtual(main())


def test_csp12_a_run_ends_when_its_sources_do_and_everything_was_paired(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script(count=40)
        report = await make_runtime(script, book).run()
        assert len(script.pairs) == report.state.pairs == 40
        assert {t for t, _ in script.pairs} == {f"t{number}" for number in range(1, 41)}
        assert_accounted(report)
        assert (report.reason, report.cut_off, report.stuck) == (None, False, ())
        assert book.named("csp.finished")[0]["balanced"] is True

    run_virtual(main())


@pytest.mark.parametrize("short", ["t", "q"])
def test_csp15_when_one_source_ends_the_rest_is_paired_and_the_other_side_written_off(
    short: str, make_script: MakeScript, book: LogBook
) -> None:
    """The other source would go on for ever; it is sent home, and what it made in excess is accounted for."""

    async def main() -> None:
        script, endless = make_script(count=7), make_script()
        runtime = make_runtime(script, book)
        producer, requester = (script, endless) if short == "t" else (endless, script)
        runtime = CspRuntime(
            producer, requester, script, capacity=CAPACITY, clock=asyncio.get_running_loop().time, log=book.log
        )
        report = await runtime.run()
        assert report.state.pairs == 7
        assert report.state.side("q" if short == "t" else "t").written_off > 0
        assert_accounted(report)

    run_virtual(main())


@pytest.mark.parametrize("role", ["produce", "send", "receive", "consume"])
def test_csp1_failing_roles_are_counted_reported_and_do_not_end_the_run(
    role: str, make_script: MakeScript, book: LogBook
) -> None:
    async def main() -> None:
        script = make_script(count=30)
        calls = 0
        real = getattr(script, f"on_{role}")

        async def sometimes(*arguments: Any) -> None:
            nonlocal calls
            calls += 1
            number = calls
            await real(*arguments)
            if number % 5 == 0:
                raise ValueError(f"call {number}")

        setattr(script, f"on_{role}", sometimes)
        report = await make_runtime(script, book).run()
        failures = report.state.failures[role]  # type: ignore[index]
        assert failures >= 5
        assert len(report.failures) == len(book.named("csp.role_failed")) == failures
        assert book.named("csp.role_failed")[0]["cause"] == "ValueError: call 5"
        if role == "consume":
            assert report.state.pairs + failures == 30
            assert report.state.t.written_off == failures
        assert_accounted(report)

    run_virtual(main())


def test_failures_back_off_and_too_many_in_a_row_stop_the_run(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script()

        async def broken(_number: int) -> None:
            raise OSError("no device")

        script.on_produce = broken
        policy = FailurePolicy(backoff=1, longest=8, give_up=20)
        report = await make_runtime(script, book, failures=policy).run()
        assert report.state.failures["produce"] == 20
        pauses = [line["pause"] for line in book.named("csp.role_failed") if line["worker"] == "S0"]
        assert pauses == [1, 2, 4, 8, 8]
        assert (report.gave_up, report.reason) == (True, "produce failed 20 times in a row")
        assert report.state.uptime < 25
        assert_accounted(report)
        run = report.run_report()
        assert (run.stopped, run.failures[0].stage, run.failures[0].cause) == (True, "t", "OSError: no device")

    run_virtual(main())


def test_a_success_ends_a_row_of_failures(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script(count=60)

        async def mostly_broken(number: int) -> None:
            if number % 3:
                raise OSError("again")

        script.on_produce = mostly_broken
        policy = FailurePolicy(backoff=0.01, longest=0.01, give_up=5)
        report = await make_runtime(script, book, failures=policy).run()
        assert (report.gave_up, report.state.pairs) == (False, 20)

    run_virtual(main())


def test_csp15_a_stop_lets_what_was_begun_end_and_begins_nothing_more(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script()
        runtime = make_runtime(script, book, deadline=60)
        running = asyncio.create_task(runtime.run())
        await asyncio.sleep(1.95)
        made, asked = script.made, script.asked
        assert runtime.snapshot().requests.in_flight > 0
        runtime.stop("enough")
        runtime.stop("again")
        report = await running
        assert (script.made, script.asked) == (made, asked)
        assert report.reason == "enough"
        assert not report.cut_off
        assert report.state.uptime < 10
        assert_accounted(report)
        assert [line["cause"] for line in book.named("csp.stopping")] == ["enough"]

    run_virtual(main())


def test_csp15_what_has_not_ended_by_the_deadline_is_written_off(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script()

        async def for_ever(*_: Any) -> None:
            await asyncio.sleep(1e6)

        script.on_consume = for_ever
        runtime = make_runtime(script, book, deadline=10)
        running = asyncio.create_task(runtime.run())
        await asyncio.sleep(5)
        runtime.stop()
        report = await running
        assert 14 - 0.1 <= report.state.uptime <= 15
        assert report.cut_off
        assert report.state.pairs == 0
        assert report.state.t.written_off == report.state.t.produced > 0
        assert_accounted(report)
        assert "C0" in book.named("csp.cut_off")[0]["workers"]

    run_virtual(main())


def test_csp15_a_worker_that_ignores_its_cancel_is_named_and_holds_nobody_up(
    make_script: MakeScript, book: LogBook
) -> None:
    async def main() -> None:
        script = make_script()
        release = asyncio.Event()

        async def stubborn(*_: Any) -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        script.on_consume = stubborn
        runtime = make_runtime(script, book, deadline=10)
        running = asyncio.create_task(runtime.run())
        await asyncio.sleep(5)
        runtime.stop()
        report = await running
        assert report.state.uptime <= 15.001
        assert sorted(report.stuck) == ["C0", "C1"]
        assert not report.balanced
        failure = report.run_report().failures[-1]
        assert (failure.subject, "ignore their cancel: C" in failure.cause) == ("books", True)
        assert ("books", f"NOT balanced: {failure.cause}") in report.rows()
        with pytest.raises(CloseFailed, match="attempt 2"):
            await runtime.close()
        release.set()
        await asyncio.sleep(1)
        await runtime.close()
        assert_accounted(runtime.report())

    run_virtual(main())


def test_csp15_a_stop_before_the_run_ends_it_at_once(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script()
        runtime = make_runtime(script, book)
        runtime.stop("early")
        report = await runtime.run()
        assert (script.made, script.asked, report.reason) == (0, 0, "early")
        assert_accounted(report)

    run_virtual(main())


def test_csp15_a_stop_while_or_after_the_run_ends_does_no_harm(make_script: MakeScript, book: LogBook) -> None:
    """Found by the soak."""

    async def main() -> None:
        script = make_script(count=2)
        runtime = make_runtime(script, book)

        async def stop_at_the_last_pair(*_: Any) -> None:
            if script.pairs:
                runtime.stop("late")

        script.on_consume = stop_at_the_last_pair
        assert (await runtime.run()).reason == "late"
        runtime.stop("later")
        assert_accounted(runtime.report())

        ended = make_runtime(make_script(count=2), book)
        assert (await ended.run()).reason is None
        ended.stop("after the end")
        assert_accounted(ended.report())

    run_virtual(main())


def test_csp15_cancelling_the_run_lets_go_of_everything(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script()
        runtime = make_runtime(script, book)
        running = asyncio.create_task(runtime.run())
        await asyncio.sleep(3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert_accounted(runtime.report())
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main())


def test_csp7_what_expires_in_stock_is_accounted_for(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script(count=30)

        async def late(ticket: Any) -> None:
            await asyncio.sleep(5 if ticket % 3 == 0 else 0.1)

        script.on_receive = late
        report = await make_runtime(script, book, t_ttl=0.5, q_ttl=2).run()
        assert report.state.t.expired > 0
        assert_accounted(report)

    run_virtual(main())


def test_a_source_learns_the_fate_of_each_resource(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script(count=6)
        other = make_script(count=4)
        fates: list[tuple[str, str]] = []
        script.settled = lambda resource, outcome: fates.append((resource, str(outcome)))  # type: ignore[attr-defined]
        loop = asyncio.get_running_loop()
        report = await CspRuntime(script, other, script, capacity=CAPACITY, clock=loop.time, log=book.log).run()
        assert len(fates) == report.state.t.produced == 6
        assert min(fates) == ("t1", "consumed")
        assert [outcome for _, outcome in fates].count("written_off") == 2

    run_virtual(main())


def test_a_settled_method_that_raises_is_reported_and_breaks_nothing(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script(count=5)

        def settled(_resource: object, _outcome: object) -> None:
            raise LookupError("who?")

        script.settled = settled  # type: ignore[attr-defined]
        report = await make_runtime(script, book).run()
        assert report.state.pairs == 5
        assert_accounted(report)
        assert len(book.named("csp.settled_failed")) == 10
        assert book.named("csp.settled_failed")[0]["cause"] == "LookupError: who?"

    run_virtual(main())


def test_a_fault_of_the_runtime_itself_is_raised_and_not_taken_for_a_roles(
    make_script: MakeScript, book: LogBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        script = make_script()
        runtime = make_runtime(script, book)

        async def broken_put(_envelope: Any) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(runtime.inventory, "put_q", broken_put)
        with pytest.raises(ZeroDivisionError):
            await runtime.run()
        assert runtime.report().state.q.slots.held == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(main())


def test_a_runtime_runs_once(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        runtime = make_runtime(make_script(count=1), book)
        await runtime.run()
        with pytest.raises(RuntimeError, match="runs once"):
            await runtime.run()
        closed = make_runtime(make_script(), book)
        await closed.close()
        with pytest.raises(RuntimeError, match="runs once"):
            await closed.run()

    run_virtual(main())


def test_the_report_is_a_run_report(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        report = (await make_runtime(make_script(count=3), book).run()).run_report()
        assert not report.failures
        assert not report.stopped
        rows = dict(report.rows)
        assert rows["pairs consumed"] == "3"
        assert rows["T"] == "3 made, 3 consumed, 0 written off, 0 expired, 0 in stock"
        assert rows["requests"] == "3 sent, 3 answered, 0 failed, 0 given up"
        assert (rows["failures"], rows["books"]) == ("none", "balanced")
        assert report.details["state"]["t"]["consumed"] == 3

    run_virtual(main())


def test_csp15_the_books_do_not_balance_while_a_worker_is_stuck(make_script: MakeScript, book: LogBook) -> None:
    """Also when it happens to hold nothing."""

    async def main() -> None:
        report = await make_runtime(make_script(count=1), book).run()
        assert report.balanced
        assert not replace(report, stuck=("S1",)).balanced

    run_virtual(main())


@pytest.mark.parametrize("name", ["t_ttl", "q_ttl", "reply_timeout", "deadline", "monitor_interval", "stall_after"])
def test_settings_refuse_times_that_make_no_sense(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=0"):
        RunSettings(**{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values", [{"backoff": 0}, {"backoff": 5, "longest": 1}, {"give_up": 0}], ids=["no pause", "longest", "give up"]
)
def test_a_failure_policy_that_makes_no_sense_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        FailurePolicy(**values)


def test_a_long_row_of_failures_pauses_no_longer_than_the_longest() -> None:
    assert FailurePolicy(give_up=None).pause(10_000) == 10.0
    assert issubclass(CloseFailed, StagewireError)
