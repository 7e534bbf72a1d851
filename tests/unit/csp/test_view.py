"""The terminal table and the metrics: the same numbers, for other eyes."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from stagewire import PluginError
from stagewire_csp import (
    Finding,
    LiveView,
    PermitState,
    Rates,
    RequestState,
    SideState,
    Snapshot,
    register_metrics,
    render,
)
from stagewire_csp.view import Pace

HUGE = PermitState(cap=100_000, free=1, held=99_999, waiting=12_345)
SIDE = SideState(
    depth=99_999,
    age=3_725.0,
    gate_open=False,
    gate_waiting=3,
    slots=HUGE,
    produced=10**9,
    consumed=123_456_789,
    written_off=3,
    expired=20_000,
)
STATE = Snapshot(
    wall=1.7e9,
    uptime=90_061.0,
    t=SIDE,
    q=replace(SIDE, gate_open=True, age=None, depth=0),
    physical=PermitState(8, 3, 5, 2),
    q_pending=HUGE,
    claims=10_000,
    claim_age=61.5,
    reserved=1,
    requests=RequestState(50, 40, 5, 1, 4),
    failures={"receive": 5},
)
FINDING = Finding("silent_stall", "q", 33.0, "nothing was produced, sent or consumed for 33 s: look at what waits")


def shown(width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(render(STATE, (FINDING,), Rates(1234.5, 1234.5, 1234.5, 0.0, 12345.6, 1.0)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_csp16_the_table_is_readable_at_80_columns() -> None:
    lines = shown(80)
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert not any("…" in line for line in lines)
    text = "\n".join(lines)
    for part in (
        "123M pairs in 25h01m",
        "99k/100k",
        "1h02m",
        "shut",
        "open",
        "5/8",
        "██████░░░░",
        "10k",
        "1m01s",
        "20k",
        "1234.5 pairs",
        "12345.6 written off",
    ):
        assert part in text
    assert "! nothing was produced" in text


def test_csp16_rates_are_of_the_last_seconds_and_0_when_nothing_happens() -> None:
    pace = Pace()
    states = [replace(STATE, uptime=float(at), t=replace(SIDE, produced=100 * min(at, 10))) for at in range(21)]
    rates = [pace.at(state).t_produced for state in states]
    assert rates[1:11] == [100.0] * 10
    assert rates[-1] == 0.0


def test_csp16_what_came_before_the_first_look_counts_too() -> None:
    assert Pace().at(replace(STATE, uptime=0.5, t=replace(SIDE, produced=8))).t_produced == 16.0


def test_csp16_the_view_is_absent_when_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with LiveView(Console(file=stream, width=80)) as view:
        view.show(STATE)
    assert stream.getvalue() == ""


def test_csp16_the_view_is_drawn_on_a_terminal_and_cleared_at_the_end() -> None:
    stream = io.StringIO()
    with LiveView(Console(file=stream, width=80, force_terminal=True)) as view:
        view.show(STATE)
        assert "physical" in stream.getvalue()
    assert stream.getvalue().count("physical") >= 1


def test_csp16_the_same_numbers_are_metrics() -> None:
    prometheus = pytest.importorskip("prometheus_client")
    registry = prometheus.CollectorRegistry()
    unregister = register_metrics(lambda: STATE, registry, pipeline="demo")
    text = prometheus.generate_latest(registry).decode()
    for line in (
        'stagewire_csp_permits_held{capacity="physical",pipeline="demo"} 5.0',
        'stagewire_csp_permits_waiting{capacity="q_pending",pipeline="demo"} 12345.0',
        'stagewire_csp_stock_depth{pipeline="demo",side="t"} 99999.0',
        'stagewire_csp_stock_oldest_age_seconds{pipeline="demo",side="q"} 0.0',
        'stagewire_csp_gate_open{pipeline="demo",side="t"} 0.0',
        'stagewire_csp_resources_total{event="expired",pipeline="demo",side="t"} 20000.0',
        'stagewire_csp_requests_total{event="failed",pipeline="demo"} 5.0',
        'stagewire_csp_role_failures_total{pipeline="demo",role="receive"} 5.0',
        'stagewire_csp_claims_waiting{pipeline="demo"} 10000.0',
        'stagewire_csp_uptime_seconds{pipeline="demo"} 90061.0',
    ):
        assert line in text
    unregister()
    assert prometheus.generate_latest(registry) == b""


def test_csp16_metrics_without_their_package_name_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client.registry", None)
    with pytest.raises(PluginError, match=r'pip install "stagewire\[metrics\]"'):
        register_metrics(lambda: STATE, object(), pipeline="demo")  # type: ignore[arg-type]
