"""Carries out the commands that read a log to its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import click
import msgspec

from stagewire import StagewireError
from stagewire_logs.conditions import Condition, measures
from stagewire_logs.filters import Filter
from stagewire_logs.progress import shown
from stagewire_logs.results import Summary
from stagewire_logs.scan import scan
from stagewire_logs.sources import Part, part_of, with_rotated
from stagewire_logs.summary import Analysis
from stagewire_logs.times import moment

FAILED = 1
NOTHING_READ = 2
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Input:
    """What to read, and which of its lines count."""

    parts: Sequence[Part]
    problems: Sequence[tuple[str, str]]
    keep: Filter


def input_of(
    *,
    files: Sequence[str],
    since: str | None = None,
    until: str | None = None,
    level: str | None = None,
    events: Sequence[str] = (),
    ids: Sequence[str] = (),
    rotated: bool = False,
) -> Input:
    """Look at the files and build the filter. Files that cannot be read are kept as problems: the others go on.

    Raises:
        click.UsageError: A time cannot be understood, or there is nothing to read.
    """
    names = list(files) or ["-"]
    if names == ["-"] and sys.stdin.isatty():
        raise click.UsageError("name a FILE, or send a log to standard input")
    now = datetime.now(UTC)
    try:
        keep = Filter(_moment(since, now), _moment(until, now), level or "", tuple(events), frozenset(ids))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    parts, problems = [], []
    if rotated:
        names = [each for name in names for each in ([name] if name == "-" else with_rotated(name))]
    for name in names:
        try:
            parts.append(part_of(name))
        except StagewireError as error:
            problems.append((name, str(error).removeprefix(f"{name}: ")))
    return Input(parts, problems, keep)


def _moment(text: str | None, now: datetime) -> str:
    return moment(text, now) if text else ""


def analyse(source: Input, *, processes: int | None = None) -> Summary:
    """Read everything; Ctrl-C ends the reading, and what was read until then is the result."""
    analysis = Analysis()
    for name, reason in source.problems:
        analysis.problem(name, reason)
    complete = True
    try:
        tallies = scan(source.parts, source.keep, analysis.problem, processes=processes)
        for origin, tally in shown(tallies, source.parts):
            analysis.add(origin, tally)
    except KeyboardInterrupt:
        complete = False
    return analysis.result(complete=complete)


def report_on(what: str, *, form: str, conditions: Sequence[str], processes: int | None, **options: object) -> int:
    """Analyse and print; returns the exit status."""
    wanted = [Condition(text) for text in conditions]
    summary = analyse(input_of(**options), processes=processes)  # type: ignore[arg-type]  # click's values
    _print(what, summary, form)
    return status_of(summary, wanted)


def status_of(summary: Summary, wanted: Sequence[Condition]) -> int:
    """Return the exit status, and name on standard error what made it."""
    found = measures(summary)
    held = [condition for condition in wanted if condition.holds(found)]
    for condition in held:
        click.echo(f"--fail-on {condition.text}: {condition.name} is {found[condition.name]:g}", err=True)
    if not summary.complete:
        return INTERRUPTED
    if held:
        return FAILED
    if not summary.records:
        click.echo("nothing was read: no line was a JSON object, or none passed the filters", err=True)
        return NOTHING_READ
    return 0


def _print(what: str, summary: Summary, form: str) -> None:
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2))
        return
    from rich.console import Console  # noqa: PLC0415 — JSON needs none of it

    from stagewire_logs import terminal  # noqa: PLC0415 — same

    printers = {"summary": terminal.print_summary, "csp": terminal.print_csp, "writes": terminal.print_writes}
    printers[what](Console(width=None if sys.stdout.isatty() else 80, highlight=False), summary)
