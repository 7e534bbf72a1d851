"""Requests, stages and edges of each pipeline (LG-1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stagewire_logs.lines import ERRORS
from stagewire_logs.measures import percentiles
from stagewire_logs.requests import Requests
from stagewire_logs.results import EdgeReport, ErrorGroup, PipelineReport, StageReport
from stagewire_logs.tally import Tally
from stagewire_logs.times import epoch

EdgeCounters = dict[tuple[str, str], Counter[str]]
"""What a transport counted, by pipeline and edge."""


def pipeline_reports(tally: Tally, errors: Sequence[ErrorGroup], edges: EdgeCounters) -> list[PipelineReport]:
    """Return one report for each pipeline that has requests, stages or edges."""
    names = tally.requests.keys() | {pipeline for pipeline, _ in edges}
    span = epoch(tally.last) - epoch(tally.first) if tally.first else 0.0
    return [_pipeline(name, tally.requests.get(name, Requests()), errors, edges, span) for name in sorted(names)]


def _pipeline(
    name: str, requests: Requests, errors: Sequence[ErrorGroup], edges: EdgeCounters, span: float
) -> PipelineReport:
    outcomes = {what: requests.outcomes[what] for what in ("admitted", "ended", "failed", "cancelled")}
    done = outcomes["ended"] + outcomes["failed"] + outcomes["cancelled"]
    return PipelineReport(
        pipeline=name,
        **outcomes,
        unfinished=len(requests.open),
        per_second=done / span if span else 0.0,
        seconds=percentiles(requests.durations),
        stages=sorted(_stages(name, requests, errors), key=_slowest_first),
        edges=list(_edges(name, requests, edges)),
    )


def _stages(name: str, requests: Requests, errors: Sequence[ErrorGroup]) -> Iterator[StageReport]:
    failed = Counter[str]()
    for group in errors:
        if group.pipeline == name and group.stage and (group.level in ERRORS or group.event == "request.failed"):
            failed[group.stage] += group.count
    best = requests.best_stages()
    for stage in sorted(best.keys() | failed.keys()):
        sketch = best.get(stage)
        count = sketch.count if sketch else 0
        yield StageReport(stage, count, requests.outputs[stage], failed[stage], percentiles(sketch))


def _slowest_first(stage: StageReport) -> float:
    return -stage.seconds.p95 if stage.seconds else 0.0


def _edges(name: str, requests: Requests, counters: EdgeCounters) -> Iterator[EdgeReport]:
    known = requests.edges.keys() | {edge for pipeline, edge in counters if pipeline == name}
    for edge in sorted(known):
        report = EdgeReport(edge, requests.edges[edge], requests.chunks[edge])
        found = counters.get((name, edge))
        if found is not None:
            report.puts, report.gets, report.bytes = found["puts"], found["gets"], found["bytes"]
            report.get_seconds = found["wait_seconds"] / max(1, found["gets"])
            report.put_blocked_seconds = found["blocked_seconds"] / max(1, found["puts"])
        yield report
