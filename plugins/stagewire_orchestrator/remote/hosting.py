"""Carries out ``stagewire worker``."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from stagewire import BuildContext, ConfigError, Job, Pipeline, Problem, Provider, RunReport, did_you_mean
from stagewire.lifecycle import ForcedStop, StopSignal
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.remote.demands import unfit
from stagewire_orchestrator.remote.worker import WorkerPipeline

BEYOND_DEADLINE = 7.0
"""Seconds that a stop has beyond its deadline, to be forced in order, before the process is ended as it is."""

TEARDOWN = 10.0
"""Seconds that the event loop has to end once the worker has."""

FORCED = 3
"""The exit status of a stop that was forced, as of ``stagewire run``."""


class Forced(click.ClickException):
    """A stop was forced."""

    exit_code = FORCED


def host(
    program: Any,
    *,
    config: str,
    overlays: Sequence[str],
    stage: str,
    replica: int | None,
    replicas: int | None,
    deadline: float,
    scope: str | None,
    until_eof: bool,
) -> int:
    """Serve until a stop; returns the exit status.

    Raises:
        ConfigError: The file is wrong, or is no pipeline whose stages may run elsewhere.
    """
    loaded = program.load(config, overlays)
    options = loaded.options
    if not isinstance(options, OrchestratorOptions):
        raise _problem(loaded, ("pipeline",), "only the stages of `pipeline: orchestrator` have workers")
    seats = _replicas(loaded, options, stage, replica, replicas)
    if unfit(loaded.transport.provider):
        message = f"{loaded.transport.use!r} reaches no other process: use another transport, such as rabbitmq"
        raise _problem(loaded, ("transport",), message)
    stop = StopSignal()
    with program.watchdog.after_signal(deadline + BEYOND_DEADLINE):
        report = _run(
            program, _as_worker(loaded, stage, seats, scope or loaded.name), stop, deadline, until_eof=until_eof
        )
    for failure in report.failures:
        click.echo(f"error: {failure.stage}: {failure.cause}", err=True)
    return _status(report, stop)


def _run(program: Any, config: Any, stop: StopSignal, deadline: float, *, until_eof: bool) -> RunReport:
    async def run() -> RunReport:
        leash = asyncio.create_task(stop_at_eof(stop)) if until_eof else None
        try:
            report: RunReport = await program.app.run(
                config, Job(None, Path.cwd()), stop=stop, deadline=deadline, tell=_tell
            )
            return report
        finally:
            if leash is not None:
                leash.cancel()
                with suppress(asyncio.CancelledError):
                    await leash
            program.watchdog.arm(TEARDOWN, "tasks and threads that do not end")

    try:
        return asyncio.run(run())
    except ForcedStop as error:
        raise Forced(str(error)) from error


async def stop_at_eof(stop: StopSignal) -> None:
    """Set the stop when standard input ends: whoever holds its other end has gone."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        with suppress(ConnectionError):
            while await reader.read(4096):
                pass
        stop.set("the process that started it has gone")
    finally:
        transport.close()


def _as_worker(config: Any, stage: str, replicas: Sequence[int], scope: str) -> Any:
    """Return the configuration with the worker in place of the whole pipeline."""

    def make(options: OrchestratorOptions, context: BuildContext) -> WorkerPipeline:
        return WorkerPipeline(options, context, stage, replicas, scope=scope)

    kind: Provider[Pipeline] = replace(config.kind, factory=make)
    return replace(config, kind=kind)


def _replicas(
    config: Any, options: OrchestratorOptions, stage: str, replica: int | None, replicas: int | None
) -> Sequence[int]:
    block = options.stages.get(stage)
    if block is None:
        hint = did_you_mean(stage, list(options.stages)) or f"; there are {', '.join(options.stages)}"
        raise _problem(config, ("stages",), f"there is no stage {stage!r}{hint}")
    if options.workers_of(stage) == "in-process":
        message = "the stage runs inside the orchestrator's process: say `workers: external` to host it elsewhere"
        raise _problem(config, ("stages", stage), message)
    first = replica or 0
    count = replicas or (1 if replica is not None else block.replicas)
    if first + count > block.replicas:
        message = (
            f"there are {block.replicas} replicas, and this worker would host number {first + count - 1}: raise it"
        )
        raise _problem(config, ("stages", stage, "replicas"), message)
    return range(first, first + count)


def _problem(config: Any, path: tuple[str, ...], message: str) -> ConfigError:
    return ConfigError([Problem(message, path, config.document.locate(path))])


def _status(report: RunReport, stop: StopSignal) -> int:
    if report.failures:
        return 1
    reason = stop.reason or ""
    return 128 + signal.Signals[reason] if reason in signal.Signals.__members__ else 0


def _tell(line: str) -> None:
    click.echo(line, err=True)
