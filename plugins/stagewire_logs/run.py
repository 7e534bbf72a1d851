"""Carries out the commands that read a log to its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from stagewire import StagewireError
from stagewire_logs.conditions import Condition, measures
from stagewire_logs.inputs import Input, input_of
from stagewire_logs.progress import shown
from stagewire_logs.results import Summary
from stagewire_logs.scan import scan
from stagewire_logs.summary import Analysis
from stagewire_logs.timeline import timeline

if TYPE_CHECKING:
    from rich.console import Console

FAILED = 1
NOTHING_READ = 2
INTERRUPTED = 130


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


def report_file(*, output: str, form: str, conditions: Sequence[str], processes: int | None, **options: object) -> int:
    """Analyse and write the HTML report; with the format ``json`` print the analysis as well. Returns the exit status.

    Raises:
        StagewireError: The file cannot be written.
    """
    from stagewire_logs.html_report import html_report  # noqa: PLC0415 — the other commands need none of it

    wanted = [Condition(text) for text in conditions]
    summary = analyse(input_of(**options), processes=processes)  # type: ignore[arg-type]  # click's values
    try:
        Path(output).write_text(html_report(summary), encoding="utf-8")
    except OSError as error:
        raise StagewireError(f"{output}: {error.strerror}") from error
    if form == "json":
        _print("summary", summary, form)
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
    from stagewire_logs import terminal  # noqa: PLC0415 — JSON needs none of it

    printers = {"summary": terminal.print_summary, "csp": terminal.print_csp, "writes": terminal.print_writes}
    printers[what](_console(), summary)


def timeline_of(name: str, *, form: str, gap: float, ids: Sequence[str], **options: object) -> int:
    """Print the timeline of one id; returns the exit status."""
    source = input_of(ids=(*ids, name), **options)  # type: ignore[arg-type]  # click's values
    found = timeline(name, source.parts, source.keep, gap)
    for origin, reason in source.problems:
        click.echo(f"{origin}: {reason}", err=True)
    if not found.entries:
        click.echo(f"nothing was found of {name!r}", err=True)
        return NOTHING_READ
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        from stagewire_logs.terminal import print_timeline  # noqa: PLC0415 — JSON needs none of it

        print_timeline(_console(), found)
    return 0


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 — JSON needs none of it

    return Console(width=None if sys.stdout.isatty() else 80, highlight=False)
