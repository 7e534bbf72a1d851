"""Carries out ``stagewire run``: input and output, the run itself, and what is shown of it."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from stagewire.cli import summary
from stagewire.cli.exits import Exit, status_of_stop
from stagewire.cli.faults import lines_of
from stagewire.cli.files import open_input
from stagewire.cli.program import Program
from stagewire.cli.progress import Observe, bar, ignore
from stagewire.config import Config
from stagewire.errors import ConfigError, Problem
from stagewire.lifecycle import ForcedStop, StopSignal
from stagewire.running import GRACE
from stagewire.spec.pipeline import Job, RunReport

BEYOND_DEADLINE = GRACE + 2.0
"""Seconds that a stop has beyond its deadline, to be forced in order, before the process is ended as it is."""

TEARDOWN = 10.0
"""Seconds that the event loop has to end once the run has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asks for; see the command's options."""

    config: str
    overlays: tuple[str, ...]
    source: str | None
    output: Path
    as_json: bool
    quiet: bool
    deadline: float


class Forced(click.ClickException):
    """A stop was forced; the program says so and exits with a status of its own."""

    exit_code = Exit.FORCED


def execute(program: Program, request: Request) -> int:
    """Run and show; returns the exit status. With ``--json`` an error is an object on standard output as well."""
    try:
        return _execute(program, request)
    except Exception as error:
        if request.as_json:
            click.echo(json.dumps({"ok": False, "error": error_data(error)}))
        raise


def error_data(error: Exception) -> dict[str, Any]:
    """Return an error JSON-able."""
    problems = error.problems if isinstance(error, ConfigError) else ()
    return {
        "type": type(error).__name__,
        "message": "\n".join(lines_of(error)),
        "problems": [_problem_data(problem) for problem in problems],
    }


def _problem_data(problem: Problem) -> dict[str, Any]:
    place = problem.location
    return {
        "message": problem.message,
        "path": list(problem.path),
        "file": str(place.file) if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }


def _execute(program: Program, request: Request) -> int:
    config = program.load(request.config, request.overlays)
    stop = StopSignal()
    with ExitStack() as stack:
        stack.enter_context(program.watchdog.after_signal(request.deadline + BEYOND_DEADLINE))
        source = None if request.source is None else stack.enter_context(open_input(request.source))
        output = _made(request.output)
        observe = stack.enter_context(_observer(request, config))
        if request.as_json:
            stack.enter_context(redirect_stdout(sys.stderr))  # what a stage prints is not part of the object
        report = _run(program, config, Job(source, output, observe), stop, request.deadline)
    _show(report, config, request)
    return _status(report, stop)


def run_job(program: Program, config: Config, job: Job, deadline: float) -> tuple[RunReport, int]:
    """Run a job until it ends or a signal stops it; returns its report and the exit status."""
    stop = StopSignal()
    with program.watchdog.after_signal(deadline + BEYOND_DEADLINE):
        report = _run(program, config, job, stop, deadline)
    return report, _status(report, stop)


def _run(program: Program, config: Config, job: Job, stop: StopSignal, deadline: float) -> RunReport:
    async def run() -> RunReport:
        try:
            return await program.app.run(config, job, stop=stop, deadline=deadline, tell=_tell)
        finally:
            program.watchdog.arm(TEARDOWN, "tasks and threads that do not end")

    try:
        return asyncio.run(run())
    except ForcedStop as error:
        raise Forced(str(error)) from error


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _made(output: Path) -> Path:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{output} cannot be made: {error.strerror}", param_hint="--output") from error
    return output


def _observer(request: Request, config: Config) -> AbstractContextManager[Observe]:
    watched = sys.stderr.isatty() and not request.quiet
    return bar(config.name) if watched else nullcontext(ignore)


def _show(report: RunReport, config: Config, request: Request) -> None:
    for line in summary.failure_lines(report):
        click.echo(line, err=True)
    if request.as_json:
        click.echo(json.dumps(summary.as_json(report, config.name, config.kind.name), default=str))
    elif not request.quiet:
        summary.print_summary(report)


def _status(report: RunReport, stop: StopSignal) -> int:
    stopped = status_of_stop(stop.reason) if report.stopped else None
    if stopped is not None:
        return stopped
    return Exit.FAILED if report.failures or report.stopped else Exit.OK
