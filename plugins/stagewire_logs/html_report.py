"""The HTML report: one file that opens from disk without a network (LG-5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from stagewire_logs.damage import MEANING
from stagewire_logs.lines import ERRORS
from stagewire_logs.page import card, html_table, page, section
from stagewire_logs.results import CspReport, ErrorGroup, Percentiles, PipelineReport, StageReport, Summary, WriteReport
from stagewire_logs.svg import Band, Line, bars, plot
from stagewire_logs.times import epoch
from stagewire_logs.wording import clock, counted, ended_of, number, rate_of, seconds, size, write_rows

MOST = 50
"""Rows of one table."""

_SHOWN = 300
"""Characters of one text."""


def html_report(summary: Summary) -> str:
    """Return the report as an HTML document."""
    names = [report.pipeline for report in summary.pipelines] or [run.pipeline for run in summary.csp]
    title = f"Log report {', '.join(dict.fromkeys(names))}".strip()
    return page(title, _body(title, summary))


def _body(title: str, summary: Summary) -> Iterator[str]:
    span = (
        f"{clock(summary.first)} to {clock(summary.last)} UTC, {seconds(summary.seconds)}"
        if summary.first
        else "no times"
    )
    read = f"{number(summary.records)} records in {number(summary.lines)} lines, {size(summary.bytes)}"
    partial = "" if summary.complete else ' <span class="bad-text">interrupted: this is what was read until then</span>'
    yield f'<h1>{escape(title)}</h1><p class="dim">{escape(span)} · {escape(read)}{partial}</p>'
    yield _cards(summary)
    yield section("Findings", _findings(summary))
    yield section("Over time", _activity(summary))
    for report in summary.pipelines:
        yield section(f"Pipeline {report.pipeline}", *_pipeline(report))
    for run in summary.csp:
        yield section(f"CSP run {run.pipeline}", *_csp(run))
    for write in summary.writes:
        yield section(f"Writes {write.pipeline}", _writes(write))
    yield section("Warnings and errors by cause", _errors(summary.errors))
    yield section("Damaged input", _damage(summary))
    yield section("Events", _events(summary))


def _cards(summary: Summary) -> str:
    parts = [*_first_error(summary), *_slowest(summary)]
    ended = sum(report.ended for report in summary.pipelines)
    failed = sum(report.failed for report in summary.pipelines)
    if ended or failed:
        parts.append(card("requests ended", number(ended)))
    if failed:
        parts.append(card("requests failed", number(failed), style="bad"))
    pairs = sum(run.pairs for run in summary.csp)
    if summary.csp:
        parts.append(card("pairs consumed", number(pairs), counted(len(summary.csp), "run")))
    parts.append(card("findings", number(len(summary.findings)), style="bad" if summary.findings else ""))
    errors = sum(summary.levels.get(level, 0) for level in ERRORS)
    parts.append(card("errors", number(errors), counted(summary.levels.get("warning", 0), "warning")))
    return f'<div class="cards">{"".join(parts)}</div>'


def _slowest(summary: Summary) -> Iterator[str]:
    """Yield the slowest stage of all pipelines, by its 95th percentile."""
    timed: list[tuple[float, StageReport, str]] = [
        (stage.seconds.p95, stage, report.pipeline)
        for report in summary.pipelines
        for stage in report.stages
        if stage.seconds is not None
    ]
    if timed:
        p95, stage, _ = max(timed, key=lambda each: each[0])
        yield card("slowest stage", stage.stage, f"p95 {seconds(p95)}")


def _first_error(summary: Summary) -> Iterator[str]:
    found = [group for group in summary.errors if group.level in ERRORS or group.event == "request.failed"]
    if found:
        first = min(found, key=lambda group: group.first)
        where = f" in {first.stage}" if first.stage else ""
        text = f"{first.event}{where}: {first.example}" if first.example else f"{first.event}{where}"
        place = f"{clock(first.first)} · {first.file}:{first.line}"
        yield card("first error", text[:_SHOWN], place, style="bad wide")


def _findings(summary: Summary) -> str:
    if not summary.findings:
        return '<p class="ok-text">No findings: nothing failed, hung, leaked, starved or stalled.</p>'
    rows = "".join(
        f'<li><b class="{"bad" if each.severity == "error" else "warn"}-text">{escape(each.kind)}</b> '
        f'{escape(each.text[:_SHOWN])} <span class="dim">{escape(clock(each.at))}</span></li>'
        for each in summary.findings[:MOST]
    )
    rest = len(summary.findings) - MOST
    return f'<ul class="findings">{rows}</ul>' + (f"<p>and {number(rest)} more</p>" if rest > 0 else "")


def _activity(summary: Summary) -> str:
    found = summary.activity
    if found is None or len(found.records) < 2:  # noqa: PLR2004 — a line has two ends
        return ""
    lines = [Line(f"records per {found.width} s", found.records, "a", filled=True)]
    if any(found.requests):
        lines.append(Line("requests ended", found.requests, "c"))
    if any(found.errors):
        lines.append(Line("errors", found.errors, "bad"))
    return plot("Records", lines, labels=(clock(summary.first), clock(summary.last)))


def _pipeline(report: PipelineReport) -> Iterator[str]:
    yield f"<p>{escape(ended_of(report) + rate_of(report))}</p>"
    timed = {stage.stage: stage.seconds.p95 for stage in report.stages[:MOST] if stage.seconds is not None}
    if timed:
        yield bars("95th percentile by stage", timed, {name: seconds(value) for name, value in timed.items()})
    rows = [
        (
            "end to end",
            number(report.ended + report.failed + report.cancelled),
            number(report.failed),
            *_times(report.seconds),
        )
    ]
    rows += [
        (stage.stage, number(stage.requests), number(stage.errors), *_times(stage.seconds))
        for stage in report.stages[:MOST]
    ]
    yield html_table("Durations", ("stage", "requests", "failed", "p50", "p90", "p95", "p99", "max"), rows, numbers=7)
    edges = (
        (
            edge.edge,
            number(edge.chunks if edge.puts is None else edge.puts),
            "" if edge.bytes is None else size(edge.bytes),
            "" if edge.get_seconds is None else seconds(edge.get_seconds),
            "" if edge.put_blocked_seconds is None else seconds(edge.put_blocked_seconds),
        )
        for edge in report.edges[:MOST]
    )
    yield html_table("Edges", ("edge", "chunks", "bytes", "put to get", "put waits"), edges, numbers=4)


def _times(found: Percentiles | None) -> tuple[str, ...]:
    if found is None:
        return ("",) * 5
    return tuple(map(seconds, (found.p50, found.p90, found.p95, found.p99, found.high)))


def _csp(run: CspReport) -> Iterator[str]:
    books = f"{counted(run.violations, 'violation')}, first {run.violation}" if run.violations else "conserved"
    state = "finished" if run.finished else "not finished"
    yield f"<p>{number(run.pairs)} pairs, {state}; books {escape(books)}, checked on {number(run.reports)} reports</p>"
    if len(run.course) > 1:
        labels, bands = (clock(run.start), clock(run.end)), _bands(run)
        stock = [Line("T in stock", [point.t for point in run.course], "a", filled=True)]
        stock += [Line("Q in stock", [point.q for point in run.course], "b")]
        yield plot("Stock; stalls and starvation are marked", stock, labels=labels, bands=bands)
        used = [Line("physical permits", [point.physical for point in run.course], "a")]
        used += [Line("requests in flight", [point.q_pending for point in run.course], "b")]
        used += [Line("claims waiting", [point.claims for point in run.course], "c")]
        yield plot("In use", used, labels=labels)
    rows = ((use.name, f"{use.mean:.1f}", str(use.high), str(use.cap)) for use in run.usage)
    yield html_table("Capacity in use", ("capacity", "mean", "most", "cap"), rows, numbers=3)
    leaks = ((leak.what, str(leak.count), leak.since) for leak in run.leaks)
    yield html_table("Leaks", ("leaked", "count", "since"), leaks)
    episodes = (
        (each.kind, (each.side or "").upper(), clock(each.start), clock(each.end), seconds(each.seconds))
        for each in run.episodes[:MOST]
    )
    yield html_table("Episodes", ("episode", "side", "from", "to", "lasted"), episodes, numbers=1)


def _bands(run: CspReport) -> list[Band]:
    began, ended = epoch(run.start), epoch(run.end)
    span = max(1e-9, ended - began)
    return [
        Band(
            min(1.0, max(0.0, (epoch(each.start) - began) / span)),
            min(1.0, (epoch(each.end or run.end) - began) / span),
            f"{each.kind} {(each.side or '').upper()} {seconds(each.seconds)}",
        )
        for each in run.episodes[:MOST]
        if each.start
    ]


def _writes(report: WriteReport) -> str:
    return html_table("Writes", ("what", "value"), write_rows(report))


def _errors(groups: Sequence[ErrorGroup]) -> str:
    rows = (
        (
            group.level,
            group.event,
            group.stage,
            group.example[:_SHOWN],
            f"{clock(group.first)} {group.file}:{group.line}",
            number(group.count),
        )
        for group in groups[:MOST]
    )
    return html_table(
        "Warnings and errors", ("level", "event", "stage", "first example", "first at", "count"), rows, numbers=1
    )


def _damage(summary: Summary) -> str:
    rows = (
        (
            each.kind,
            MEANING[each.kind],
            f"{each.file}:{each.line}" if each.line else each.file,
            each.sample,
            number(each.count),
        )
        for each in summary.damage
    )
    return html_table("Damage", ("kind", "what", "first at", "sample", "count"), rows, numbers=1)


def _events(summary: Summary) -> str:
    rows = ((each.pipeline, each.level, each.event[:_SHOWN], number(each.count)) for each in summary.events[:MOST])
    return html_table("Events", ("pipeline", "level", "event", "count"), rows, numbers=1)
