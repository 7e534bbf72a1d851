"""What the monitor says, and that it only reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stagewire.testing import run_virtual
from stagewire_csp import (
    Capacity,
    CspRuntime,
    PermitState,
    Rates,
    RequestState,
    RunSettings,
    SideState,
    Snapshot,
)
from stagewire_csp.findings import Detective

if TYPE_CHECKING:
    from tests.unit.csp.conftest import LogBook, Script

MakeScript = Callable[..., "Script"]

PERMITS = PermitState(cap=4, free=4, held=0, waiting=0)
SIDE = SideState(
    depth=0,
    age=None,
    gate_open=True,
    gate_waiting=0,
    slots=PERMITS,
    produced=0,
    consumed=0,
    written_off=0,
    expired=0,
)
STATE = Snapshot(
    wall=1.0,
    uptime=0.0,
    t=SIDE,
    q=SIDE,
    physical=PERMITS,
    q_pending=PERMITS,
    claims=0,
    claim_age=None,
    reserved=0,
    requests=RequestState(0, 0, 0, 0, 0),
)


async def for_ever(*_: Any) -> None:
    await asyncio.sleep(1e6)


def make_runtime(script: Script, book: LogBook, **settings: Any) -> CspRuntime:
    loop = asyncio.get_running_loop()
    return CspRuntime(
        script,
        script,
        script,
        capacity=Capacity(physical=2, t_slot=4, q_slot=4, q_pending=4),
        settings=RunSettings(**{"monitor_interval": 10, "stall_after": 20, "deadline": 1, **settings}),
        clock=loop.time,
        wall=lambda: 1e9 + loop.time(),
        log=book.log,
    )


async def watch(runtime: CspRuntime, seconds: float) -> None:
    running = asyncio.create_task(runtime.run())
    await asyncio.sleep(seconds)
    runtime.stop()
    await running


def test_csp16_a_structured_event_tells_depths_permits_waits_ages_rates_and_lateness(
    make_script: MakeScript, book: LogBook
) -> None:
    async def main() -> None:
        script = make_script()
        script.on_receive = for_ever
        await watch(make_runtime(script, book), 25)
        first, second = book.named("csp.monitor")
        assert (first["uptime"], first["wall"]) == (10.0, 1e9 + 10)
        assert (second["uptime"], second["wall"]) == (20.0, 1e9 + 20)
        assert first["t"]["depth"] == 4
        assert first["t"]["age"] > 9
        assert first["t"]["slots"] == {"cap": 4, "free": 0, "held": 4, "waiting": 3}  # passed the gate before it shut
        assert (first["t"]["gate_open"], first["t"]["gate_waiting"]) == (False, 1)
        assert first["q_pending"] == {"cap": 4, "free": 0, "held": 4, "waiting": 2}
        assert first["claims"] == {"waiting": 4, "age": 10.0, "reserved": 0}
        assert first["requests"] == {"sent": 4, "answered": 0, "failed": 0, "given_up": 0, "in_flight": 4}
        assert first["rates"]["t_produced"] == pytest.approx(0.7)
        assert (first["lateness"], first["pipeline"]) == (0.0, "test")

    run_virtual(main())


def test_csp_trap_a_stall_reads_as_a_rate_of_zero_and_as_a_finding(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        script = make_script()
        script.on_receive = for_ever
        await watch(make_runtime(script, book), 55)
        lines = book.named("csp.monitor")
        assert set(lines[-1]["rates"].values()) == {0.0}
        stalls = [[each for each in line["findings"] if each["kind"] == "silent_stall"] for line in lines]
        assert [len(each) for each in stalls] == [0, 0, 1, 1, 1]
        assert stalls[-1][0]["side"] == "q"
        assert stalls[-1][0]["seconds"] == pytest.approx(40, abs=1)
        warnings = [line for line in book.named("csp.finding") if line["kind"] == "silent_stall"]
        assert len(warnings) == 1  # said once, when it appears
        assert "4 requests in flight" in warnings[0]["text"]

    run_virtual(main())


def test_csp10_one_sided_starvation_is_named(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        slow = make_script()

        async def seldom(_ticket: Any) -> None:
            await asyncio.sleep(15)

        slow.on_receive = seldom
        await watch(make_runtime(slow, book), 35)
        starved = [line for line in book.named("csp.finding") if line["kind"] == "one_sided_starvation"]
        assert [line["side"] for line in starved] == ["q"]
        assert "look at what produces Q" in starved[0]["text"]

    run_virtual(main())


def test_csp_trap_expired_stock_that_holds_every_slot_is_named(make_script: MakeScript, book: LogBook) -> None:
    """The producer waits for a slot and the consumer for the other side: allowed by the design, and said."""

    async def main() -> None:
        script = make_script()
        script.on_receive = for_ever
        runtime = make_runtime(script, book, t_ttl=5)
        await watch(runtime, 15)
        found = [line for line in book.named("csp.finding") if line["kind"] == "expired_stock_holds_every_slot"]
        assert [line["side"] for line in found] == ["t"]
        assert "all 4 T in stock have expired" in found[0]["text"]

    run_virtual(main())


def test_csp10_the_monitor_only_reads(make_script: MakeScript, book: LogBook) -> None:
    """Expired stock is still there after any number of reports: looking sweeps nothing."""

    async def main() -> None:
        script = make_script()
        script.on_receive = for_ever
        runtime = make_runtime(script, book, t_ttl=1)
        running = asyncio.create_task(runtime.run())
        await asyncio.sleep(15)
        before = replace(runtime.snapshot(), wall=0)
        for _ in range(5):
            runtime.monitor.report()
        assert replace(runtime.snapshot(), wall=0) == before
        assert before.t.depth == 4
        assert before.t.expired == 0
        runtime.stop()
        await running

    run_virtual(main())


def test_csp16_a_late_event_loop_shows(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        script = make_script()
        runtime = make_runtime(script, book)
        # a callback that blocks for 3 s of virtual time, between two beats
        loop.call_later(5.1, lambda: loop.jump(3.0))  # type: ignore[attr-defined]
        await watch(runtime, 25)
        first, second = book.named("csp.monitor")
        assert first["lateness"] == pytest.approx(2.85, abs=0.01)
        assert second["lateness"] == 0.0

    run_virtual(main())


def test_csp16_beats_feed_a_live_view(make_script: MakeScript, book: LogBook) -> None:
    async def main() -> None:
        seen: list[Snapshot] = []
        script = make_script(count=10)
        loop = asyncio.get_running_loop()
        runtime = CspRuntime(
            script,
            script,
            script,
            capacity=Capacity(2, 4, 4, 4),
            clock=loop.time,
            log=book.log,
            on_beat=seen.append,
        )
        await runtime.run()
        assert len(seen) > 5
        assert [state.pairs for state in seen] == sorted(state.pairs for state in seen)

    run_virtual(main())


def test_csp_trap_rates_use_the_real_time_and_are_never_unknown() -> None:
    first = replace(STATE, uptime=4.0, t=replace(SIDE, produced=8, consumed=2, expired=4))
    assert Rates.between(None, first) == Rates(2.0, 0.0, 0.5, 1.0, 0.0, 0.0)
    late = replace(first, uptime=24.0, t=replace(first.t, produced=28))
    assert Rates.between(first, late).t_produced == 1.0  # 20 s have passed, whatever the interval was meant to be
    assert Rates.between(late, late) == Rates(0, 0, 0, 0, 0, 0)
    assert Rates.between(None, STATE).pairs == 0


def test_csp10_starvation_needs_two_looks_and_ends_with_its_cause() -> None:
    detective = Detective(stall_after=1e9)
    starved = replace(STATE, uptime=10.0, claims=3, t=replace(SIDE, depth=2))
    assert detective.look(starved) == []  # it may be the moment between a put and a grant
    found = detective.look(replace(starved, uptime=25.0))
    assert [(finding.kind, finding.side, finding.seconds) for finding in found] == [("one_sided_starvation", "q", 15.0)]
    assert detective.look(replace(starved, uptime=30.0, claims=0)) == []
    assert detective.look(replace(starved, uptime=40.0)) == []  # counted anew


def test_csp10_progress_of_any_kind_ends_a_stall() -> None:
    detective = Detective(stall_after=10)
    assert detective.look(STATE) == []
    assert [finding.kind for finding in detective.look(replace(STATE, uptime=10.0))] == ["silent_stall"]
    moving = replace(STATE, uptime=11.0, failures={"produce": 1})
    assert detective.look(moving) == []
    assert [finding.seconds for finding in detective.look(replace(moving, uptime=30.0))] == [19.0]
    assert detective.look(replace(moving, uptime=30.0))[0].side is None


def test_csp10_expired_stock_is_no_finding_while_a_slot_is_free() -> None:
    stuck = replace(STATE, t=replace(SIDE, depth=4, age=9.0, slots=replace(PERMITS, free=0, held=4)))
    detective = Detective(stall_after=1e9)
    assert [finding.side for finding in detective.look(stuck, all_expired=frozenset({"t"}))] == ["t"]
    free = replace(stuck, t=replace(stuck.t, slots=PERMITS))
    assert detective.look(free, all_expired=frozenset({"t"})) == []


def test_csp16_a_snapshot_says_whether_the_books_balance() -> None:
    side = replace(SIDE, produced=10, consumed=4, written_off=1, expired=2, slots=PermitState(4, 2, 2, 1))
    assert side.balanced
    assert not replace(side, produced=11).balanced
    assert replace(STATE, t=side).side("t") is side


def test_csp_trap_a_wall_clock_that_steps_changes_nothing(make_script: MakeScript, book: LogBook) -> None:
    """A wall clock that steps back changes no rate and no age."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        script = make_script()
        runtime = CspRuntime(
            script,
            script,
            script,
            capacity=Capacity(2, 4, 4, 4),
            settings=RunSettings(monitor_interval=5, deadline=1),
            clock=loop.time,
            wall=lambda: time.time() - 1000 * loop.time(),
            log=book.log,
        )
        await watch(runtime, 12)
        first, second = book.named("csp.monitor")
        assert first["wall"] > second["wall"]
        assert second["rates"]["pairs"] > 0
        assert second["uptime"] == 10

    run_virtual(main())
