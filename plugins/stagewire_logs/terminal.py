"""A summary for a person at a terminal, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from stagewire_logs.damage import MEANING
from stagewire_logs.pretty import COLOURS, brief
from stagewire_logs.results import CspReport, Finding, Percentiles, PipelineReport, Summary, WriteReport
from stagewire_logs.timeline import Timeline
from stagewire_logs.wording import clock, counted, ended_of, number, rate_of, seconds, size, write_rows

MOST = 8
"""Rows of one table."""

_BARS = "▁▂▃▄▅▆▇█"


def print_summary(console: Console, summary: Summary) -> None:
    """Print all of it."""
    console.print(_head(summary), soft_wrap=True)
    console.print()
    show(console, [_findings(summary), _pipelines(summary), _csp(summary), _writes(summary)])
    show(console, [_errors(summary), _damage(summary)])


def print_csp(console: Console, summary: Summary) -> None:
    """Print the CSP report (LG-2)."""
    if not summary.csp:
        console.print("no CSP run in this log: no event csp.started, csp.monitor or csp.finished")
        return
    show(console, [_findings(summary, "csp_"), *(_csp_run(run, all_episodes=True) for run in summary.csp)])


def print_writes(console: Console, summary: Summary) -> None:
    """Print the write-session report (LG-3)."""
    if not summary.writes:
        console.print("no write session and no lease in this log")
        return
    show(console, [_findings(summary, "session_", "lease_", "key_"), _writes(summary)])


def show(console: Console, parts: Sequence[RenderableType | None]) -> None:
    """Print the parts that there are, an empty line between them."""
    for part in parts:
        if part is not None:
            console.print(part)
            console.print()


def table(title: str, *columns: str, numbers: int = 0) -> Table:
    """Return an empty table; the last ``numbers`` columns are right-aligned."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for at, column in enumerate(columns):
        right = at >= len(columns) - numbers
        made.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    return made


def _head(summary: Summary) -> RenderableType:
    lines = [f"{number(summary.records)} records in {number(summary.lines)} lines, {size(summary.bytes)}"]
    if summary.first:
        lines.append(f"{clock(summary.first)} to {clock(summary.last)} UTC, {seconds(summary.seconds)}")
    levels = ", ".join(f"{number(count)} {level}" for level, count in summary.levels.items())
    lines.append(levels)
    if summary.foreign:
        lines.append("of other loggers: " + ", ".join(f"{number(n)} {name}" for name, n in summary.foreign.items()))
    if not summary.complete:
        lines.append("interrupted: this is what was read until then")
    lines += [f"{source.name}: {source.problem}" for source in summary.sources if source.problem]
    activity = summary.activity
    if activity is not None and len(activity.records) > 1:
        lines.append(f"{spark(activity.records)}  records over time")
    return Text("\n".join(line for line in lines if line))


def spark(counts: Sequence[int], width: int = 60) -> str:
    """Return counts as a row of small bars."""
    step = max(1, -(-len(counts) // width))
    sums = [sum(counts[at : at + step]) for at in range(0, len(counts), step)]
    most = max(sums) or 1
    return "".join(_BARS[(count * (len(_BARS) - 1) + most - 1) // most] if count else " " for count in sums)


def _findings(summary: Summary, *prefixes: str) -> RenderableType:
    found = [each for each in summary.findings if not prefixes or each.kind.startswith(prefixes)]
    if not found:
        return Text("no findings", style="green")
    rows = table(counted(len(found), "finding"), "at", "what")
    for finding in found[: 2 * MOST]:
        rows.add_row(clock(finding.at), _finding_text(finding))
    return _with_rest(rows, len(found) - 2 * MOST)


def _finding_text(finding: Finding) -> Text:
    style = "red" if finding.severity == "error" else "yellow"
    return Text.assemble((f"{finding.kind} ", style), finding.text)


def _with_rest(rows: Table, rest: int) -> RenderableType:
    return Group(rows, Text(f"… {rest} more: --format json has all", style="dim")) if rest > 0 else rows


def _pipelines(summary: Summary) -> RenderableType | None:
    parts = [part for report in summary.pipelines for part in _pipeline(report)]
    return Group(*parts) if parts else None


def _pipeline(report: PipelineReport) -> Iterator[RenderableType]:
    yield Text.assemble((f"pipeline {report.pipeline}", "bold"), f": {ended_of(report)}{rate_of(report)}")
    rows = table("", "", "requests", "failed", "p50", "p95", "p99", "max", numbers=6)
    rows.title = None
    if report.seconds is not None:
        done = report.ended + report.failed + report.cancelled
        rows.add_row("end to end", number(done), number(report.failed), *_times(report.seconds), style="bold")
    for stage in report.stages[:MOST]:
        rows.add_row(stage.stage, number(stage.requests), number(stage.errors), *_times(stage.seconds))
    if rows.row_count:
        yield rows
    if report.edges:
        yield _edges(report)


def _edges(report: PipelineReport) -> RenderableType:
    rows = table("", "edge", "chunks", "bytes", "put → get", "put waits", numbers=4)
    rows.title = None
    for edge in report.edges[:MOST]:
        chunks = edge.chunks if edge.puts is None else int(edge.puts)
        moved = "" if edge.bytes is None else size(int(edge.bytes))
        rows.add_row(edge.edge, number(chunks), moved, _maybe(edge.get_seconds), _maybe(edge.put_blocked_seconds))
    return _with_rest(rows, len(report.edges) - MOST)


def _maybe(value: float | None) -> str:
    return "" if value is None else seconds(value)


def _times(found: Percentiles | None) -> tuple[str, ...]:
    return ("", "", "", "") if found is None else tuple(map(seconds, (found.p50, found.p95, found.p99, found.high)))


def _csp(summary: Summary) -> RenderableType | None:
    return Group(*(_csp_run(run) for run in summary.csp[-3:])) if summary.csp else None


def _csp_run(run: CspReport, *, all_episodes: bool = False) -> RenderableType:
    state = "finished" if run.finished else "not finished"
    rows = table(f"CSP run {run.pipeline}: {number(run.pairs)} pairs, {state}", "", "")
    rows.show_header = False
    for side, totals in (("T", run.t), ("Q", run.q), ("requests", run.requests)):
        rows.add_row(side, ", ".join(f"{number(count)} {what.replace('_', ' ')}" for what, count in totals.items()))
    used = [f"{use.name} {use.mean:.1f} of {use.cap} (most {use.high})" for use in run.usage]
    rows.add_row("in use", ", ".join(used))
    books = f"{counted(run.violations, 'violation')}, first {run.violation}" if run.violations else "conserved"
    rows.add_row("books", f"{books}, checked on {number(run.reports)} reports")
    if len(run.course) > 1:
        rows.add_row("T stock", spark([point.t for point in run.course]))
        rows.add_row("Q stock", spark([point.q for point in run.course]))
    for leak in run.leaks:
        rows.add_row("leak", f"{leak.count} {leak.what} since {clock(leak.since)}")
    for episode in run.episodes if all_episodes else ():
        until = clock(episode.end) if episode.end else "the end"
        side = f" of {episode.side.upper()}" if episode.side else ""
        rows.add_row(
            episode.kind.replace("_", " "), f"{clock(episode.start)} to {until}{side}, {seconds(episode.seconds)}"
        )
    return rows


def _writes(summary: Summary) -> RenderableType | None:
    return Group(*map(_write, summary.writes)) if summary.writes else None


def _write(report: WriteReport) -> RenderableType:
    rows = table(f"writes {report.pipeline}", "", "")
    rows.show_header = False
    for name, value in write_rows(report):
        rows.add_row(name, value)
    return rows


def _errors(summary: Summary) -> RenderableType | None:
    if not summary.errors:
        return None
    rows = table("warnings and errors by cause", "what", "first", "count", numbers=1)
    for group in summary.errors[:MOST]:
        style = "yellow" if group.level == "warning" else "red"
        where = f" in {group.stage}" if group.stage else ""
        what = Text.assemble((group.event, style), f"{where} {group.example}")
        rows.add_row(what, f"{clock(group.first)}\n{_tail(group.file)}:{group.line}", number(group.count))
    return _with_rest(rows, len(summary.errors) - MOST)


def _damage(summary: Summary) -> RenderableType | None:
    if not summary.damage:
        return None
    rows = table("damaged input", "what", "first", "count", numbers=1)
    for each in summary.damage:
        where = f"{_tail(each.file)}:{each.line}" if each.line else _tail(each.file)
        rows.add_row(f"{each.kind}: {MEANING[each.kind]}", f"{where} {each.sample[:30]}", number(each.count))
    return rows


def _tail(name: str, length: int = 24) -> str:
    return name if len(name) <= length else f"…{name[1 - length :]}"


def print_timeline(console: Console, found: Timeline) -> None:
    """Print one request or session, one line an entry (LG-4)."""
    console.print(Text.assemble((found.id, "bold"), f": {len(found.entries)} entries, {seconds(found.seconds)}"))
    rows = table("", "", "after", "event", "what")
    rows.title = None
    for entry in found.entries:
        if entry.gap is not None:
            rows.add_row("", "", Text(f"… {seconds(entry.gap)} of silence", style="yellow"), "")
        style = COLOURS.get(entry.level, "white")
        where = f"{entry.where} " if entry.where else ""
        rows.add_row(
            entry.at[11:23], f"+{entry.offset:.3f}", Text(entry.event, style=style), f"{where}{brief(entry.fields)}"
        )
    console.print(rows)
    if found.left_out:
        console.print(f"… and {number(found.left_out)} more entries")
