"""Carries out ``stagewire run``: input and output, the run itself, and what is shown of it."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from contextlib import AbstractContextManager, ExitStack, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from stagewire.cli import summary
from stagewire.cli.exits import Exit, status_of_stop
from stagewire.cli.faults import lines_of
from stagewire.cli.files import FileInput, open_input
from stagewire.cli.hints import InputHint
from stagewire.cli.program import Program
from stagewire.cli.progress import Observe, display, ignore
from stagewire.cli.streams import silence, tell
from stagewire.cli.watchdog import BLOCKED
from stagewire.config import Config
from stagewire.errors import ConfigError, Problem, StagewireError
from stagewire.lifecycle import ForcedStop, StopSignal
from stagewire.running import LAST
from stagewire.spec.pipeline import INPUT_DIRECTORY, Job, RunReport

BEYOND_DEADLINE = LAST + 0.5
"""Seconds that a stop has beyond its deadline, to be forced in order, before the process is ended as it is."""

TEARDOWN = 10.0
"""Seconds that the event loop has to end once the run has."""

FORCED_TEARDOWN = 0.5
"""The same once the run was forced to end."""


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run ended, and whether by force."""

    report: RunReport
    forced: ForcedStop | None = None


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
        directory = _directory(request.source, config)
        source = None if directory or request.source is None else stack.enter_context(open_input(request.source))
        hint = InputHint(wanted=request.source is None and not request.quiet)
        hint.give()
        running = Execution(program, config, request, stop)
        outcome = asyncio.run(running.run(source, directory, _made(request.output)))
        hint.give()
    return _status(outcome, stop)


@dataclass(frozen=True, slots=True)
class Execution:
    """One run, and what is shown of it: before the event loop ends, for what a stage left there may hold that up."""

    program: Program
    config: Config
    request: Request
    stop: StopSignal

    async def run(self, source: FileInput | None, directory: Path | None, output: Path) -> Outcome:
        """Run, show, and give the event loop little time to end."""
        with ExitStack() as stack:
            observe = stack.enter_context(_observer(self.request, self.config))
            if self.request.as_json:
                stack.enter_context(redirect_stdout(sys.stderr))  # what a stage prints is not part of the object
            job = Job(source, output, observe, directory)
            outcome = await _run(self.program, self.config, job, self.stop, self.request.deadline)
        self._show(outcome)
        return outcome

    def _show(self, outcome: Outcome) -> None:
        report, forced = outcome.report, outcome.forced
        if self.program.debug:
            self._show_tracebacks(report)
        lines = [*summary.failure_lines(report), *(lines_of(forced) if forced is not None else ())]
        for line in lines:
            tell(line)
        _say(self._result(report, forced))

    def _show_tracebacks(self, report: RunReport) -> None:
        for failure in report.failures:
            if failure.error is not None:
                tell("".join(traceback.format_exception(failure.error)).rstrip())

    def _result(self, report: RunReport, forced: ForcedStop | None) -> str:
        if self.request.as_json:
            data = summary.as_json(report, self.config.name, self.config.kind.name)
            if forced is not None:
                data |= {"ok": False, "error": error_data(forced)}
            return json.dumps(data, default=str) + "\n"
        return "" if self.request.quiet else summary.as_text(report)


def run_job(program: Program, config: Config, job: Job, deadline: float) -> tuple[RunReport, int]:
    """Run a job until it ends or a signal stops it; returns its report and the exit status."""
    stop = StopSignal()
    outcome = asyncio.run(_run(program, config, job, stop, deadline))
    for line in lines_of(outcome.forced) if outcome.forced is not None else ():
        tell(line)
    return outcome.report, _status(outcome, stop)


async def _run(program: Program, config: Config, job: Job, stop: StopSignal, deadline: float) -> Outcome:
    watchdog, teardown = program.watchdog, TEARDOWN
    try:
        with watchdog.after_signal(deadline + BEYOND_DEADLINE, partial(_blocker, asyncio.get_running_loop())):
            return Outcome(await program.app.run(config, job, stop=stop, deadline=deadline, tell=tell))
    except ForcedStop as forced:
        teardown = FORCED_TEARDOWN
        return Outcome(forced.report or RunReport(stopped=True), forced)
    finally:
        watchdog.arm(teardown, "tasks and threads that do not end")


def _blocker(loop: asyncio.AbstractEventLoop) -> str:
    task = asyncio.current_task(loop)
    return BLOCKED if task is None else f"{BLOCKED}: task {task.get_name()!r}"


def _say(text: str) -> None:
    """Print on standard output; that nobody reads it changes nothing about the run. Raises `StagewireError`."""
    try:
        click.echo(text, file=sys.stdout, nl=False)  # as its encoding has it: click would override ASCII
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        raise StagewireError(f"standard output cannot be written: {error.strerror}") from error


def _directory(source: str | None, config: Config) -> Path | None:
    """Return the input if it is a directory, which this kind of pipeline takes."""
    if source is None or source == "-" or INPUT_DIRECTORY not in config.kind.capabilities:
        return None
    path = Path(source).absolute()
    return path if path.is_dir() else None


def _made(output: Path) -> Path:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{output} cannot be made: {error.strerror}", param_hint="--output") from error
    return output


def _observer(request: Request, config: Config) -> AbstractContextManager[Observe]:
    watched = sys.stderr.isatty() and not request.quiet
    return display(config.name) if watched else nullcontext(ignore)


def _status(outcome: Outcome, stop: StopSignal) -> int:
    report = outcome.report
    if outcome.forced is not None:
        return Exit.FORCED
    stopped = status_of_stop(stop.reason) if report.stopped else None
    if stopped is not None:
        return stopped
    return Exit.FAILED if report.failures or report.stopped else Exit.OK
