"""What was injected into a seeded run is found from the log alone, and a clean run has no finding (LG-1, LG-2)."""

from __future__ import annotations

from typing import Any

import pytest

from stagewire_logs.testing import CspFaults, RequestFaults, csp_run, request_run
from stagewire_logs.times import epoch


def kinds(summary: Any) -> set[str]:
    return {finding.kind for finding in summary.findings}


@pytest.mark.parametrize("seed", range(3))
def test_a_clean_run_has_no_finding(seed: int, summarise: Any) -> None:
    assert summarise(request_run(seed, 200)).findings == []
    assert summarise(csp_run(seed, 200)).findings == []


def test_lg1_counts_durations_and_edges_are_those_of_the_run(summarise: Any) -> None:
    events = list(request_run(1, 50))
    found = summarise(events)
    (pipeline,) = found.pipelines
    assert (pipeline.admitted, pipeline.ended, pipeline.failed, pipeline.unfinished) == (50, 50, 0, 0)
    assert {stage.stage: stage.requests for stage in pipeline.stages} == {"gather": 50, "tokens": 50, "audio": 50}
    assert pipeline.stages[0].stage == "audio", "the slowest first"
    longest = max(event["seconds"] for event in events if event["event"] == "request.ended")
    assert pipeline.seconds.high == longest
    chunks = sum(event["chunks"] for event in events if event["event"] == "stage.forwarded")
    assert [(edge.edge, edge.requests, edge.chunks) for edge in pipeline.edges] == [("gather->tokens", 50, chunks)]


def test_lg1_failed_requests_are_grouped_by_cause_with_the_first_example(summarise: Any) -> None:
    found = summarise(request_run(1, 50, RequestFaults(failed=frozenset({7, 9, 30}))))
    (group,) = found.errors
    assert (group.event, group.stage, group.count, group.request_id) == ("request.failed", "tokens", 3, "r-0000007")
    assert group.cause == "process: ValueError: token # is out of range"
    assert group.example == "process: ValueError: token 7 is out of range"
    (finding,) = found.findings
    assert (finding.kind, finding.severity, finding.count) == ("request_failed", "error", 3)
    assert "stage tokens" in finding.text


def test_lg1_a_hung_request_is_found_with_the_stage_that_it_is_in(summarise: Any) -> None:
    (finding,) = summarise(request_run(1, 50, RequestFaults(hung=frozenset({12})))).findings
    assert (finding.kind, finding.count) == ("request_hung", 1)
    assert "r-0000012 (in tokens)" in finding.text


def test_lg1_an_id_that_is_used_again_is_followed_anew(summarise: Any) -> None:
    runs = [event | ({"request_id": "run"} if "request_id" in event else {}) for event in request_run(1, 4)]
    assert summarise(runs).findings == []
    cut = [event for event in runs[:-2] if event["event"] != "app.finished"]
    later = {"timestamp": "2026-11-19T00:00:00.000000Z", "level": "info", "event": "app.started", "pipeline": "speech"}
    (finding,) = summarise([*cut, later]).findings
    assert (finding.kind, finding.count) == ("request_hung", 1)


def test_lg3_a_lost_lease_is_found(summarise: Any) -> None:
    found = summarise(request_run(1, 50, RequestFaults(lost_lease=3)))
    assert kinds(found) == {"lease_lost"}
    assert found.writes[0].leases_lost == 1


def report_at(run: list[dict[str, Any]], number: int) -> str:
    return str([event for event in run if event["event"] == "csp.monitor"][number]["timestamp"])


@pytest.mark.parametrize("seed", range(5))
def test_lg2_a_leaked_slot_is_found_with_its_moment(seed: int, summarise: Any) -> None:
    run = list(csp_run(seed, 60, CspFaults(leak_t=25)))
    found = summarise(run)
    assert [(leak.what, leak.count, leak.since) for leak in found.csp[0].leaks] == [("t_slot", 1, report_at(run, 25))]
    assert "csp_leak" in kinds(found)


def test_lg2_a_leak_shows_while_the_run_goes_on(summarise: Any) -> None:
    run = list(csp_run(3, 60, CspFaults(leak_t=25)))[:40]
    assert [(leak.what, leak.since) for leak in summarise(run).csp[0].leaks] == [("t_slot", report_at(run, 25))]


@pytest.mark.parametrize("seed", range(5))
def test_lg2_a_stall_is_found_with_start_end_and_side(seed: int, summarise: Any) -> None:
    run = list(csp_run(seed, 60, CspFaults(stall=(20, 31))))
    (stall,) = [episode for episode in summarise(run).csp[0].episodes if episode.kind == "stall"]
    assert (stall.side, stall.start, stall.end) == ("q", report_at(run, 19), report_at(run, 31))
    assert stall.seconds == pytest.approx(epoch(stall.end) - epoch(stall.start))


def test_lg2_a_stall_that_lasts_to_the_end_has_no_end(summarise: Any) -> None:
    run = [event for event in csp_run(1, 60, CspFaults(stall=(20, 60))) if event["event"] != "csp.finished"]
    (stall,) = [episode for episode in summarise(run).csp[0].episodes if episode.kind == "stall"]
    assert (stall.start, stall.end) == (report_at(run, 19), "")


def test_lg2_starvation_is_found_with_its_side(summarise: Any) -> None:
    run = list(csp_run(2, 60, CspFaults(starve_t=(20, 31))))
    starved = [episode for episode in summarise(run).csp[0].episodes if episode.kind == "starvation"]
    assert [(episode.side, episode.end) for episode in starved] == [("t", report_at(run, 31))]
    assert starved[0].seconds >= 50


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (("q", "produced"), "Q: "),
        (("t", "consumed"), "T: "),
        (("t", "slots", "free"), "t_slot: cap"),
        (("physical", "held"), "physical: cap"),
        (("requests", "sent"), "requests: "),
        (("t", "depth"), "T: "),
    ],
)
def test_lg2_the_books_are_checked_on_every_report(path: tuple[str, ...], what: str, summarise: Any) -> None:
    run = list(csp_run(2, 40))
    place = run[20]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] += 100
    found = summarise(run)
    assert found.csp[0].violations >= 1
    assert found.csp[0].violation.startswith(f"{run[20]['timestamp']}: {what}")
    assert "csp_books" in kinds(found)


def test_lg2_missing_reports_are_a_finding(summarise: Any) -> None:
    run = list(csp_run(2, 60))
    found = summarise(run[:20] + run[40:])
    assert kinds(found) == {"csp_no_reports"}


def test_lg2_several_runs_are_told_apart(summarise: Any) -> None:
    found = summarise([*csp_run(1, 10), *csp_run(2, 12)])
    assert [run.reports for run in found.csp] == [11, 13]
    assert found.findings == []
