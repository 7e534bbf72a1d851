"""The program: finds the commands, runs one, and turns whatever happens into lines and an exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence

import click
from click.shell_completion import shell_complete

from stagewire.cli.exits import HELP, Exit
from stagewire.cli.faults import lines_of, status_of
from stagewire.cli.options import Group
from stagewire.cli.program import Program
from stagewire.cli.streams import (
    escape_what_cannot_be_encoded,
    flushed,
    give_up_broken,
    open_standard_streams,
    silence,
    tell,
)
from stagewire.cli.watchdog import Watchdog
from stagewire.errors import PluginError

COMPLETE_VARIABLE = "_STAGEWIRE_COMPLETE"
"""What a shell sets that asks for completion: ``eval "$(_STAGEWIRE_COMPLETE=bash_source stagewire)"``."""

EXIT_GRACE = 5.0
"""Seconds that the interpreter has to end after the program has; a thread that a stage left behind may hold it up."""

FORCED_EXIT_GRACE = 0.5
"""The same after a stop that was forced."""


def main() -> int:
    """Run the program on the process's arguments, and return its exit status. Does not hang at the end."""
    open_standard_streams()
    watchdog = Watchdog(Exit.FORCED)
    watchdog.start()
    status = invoke(sys.argv[1:], watchdog=watchdog)
    give_up_broken(sys.stderr)
    watchdog.arm(FORCED_EXIT_GRACE if status == Exit.FORCED else EXIT_GRACE, "a thread that was left behind")
    return status


def invoke(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str] = os.environ,
    extra_plugins: Mapping[str, object] | None = None,
    watchdog: Watchdog | None = None,
) -> int:
    """Run the program on the arguments, and return its exit status. Raises nothing."""
    program = Program(environ, extra_plugins, watchdog or Watchdog(Exit.FORCED))
    for stream in (sys.stdout, sys.stderr):
        escape_what_cannot_be_encoded(stream)
    try:
        return flushed(_run(program, list(arguments)))
    except BrokenPipeError:
        silence(sys.stdout)
        return Exit.BROKEN_PIPE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _run(program: Program, arguments: list[str]) -> int:
    try:
        return _dispatch(program, arguments)
    except BrokenPipeError:
        raise
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 — the last place that can say what happened
        return _report(error, debug=program.debug)


def _dispatch(program: Program, arguments: list[str]) -> int:
    """Do what `click.Command.main` does, except that errors come out as they are."""
    if instruction := program.environ.get(COMPLETE_VARIABLE):
        return shell_complete(stagewire_group, {"obj": program}, "stagewire", COMPLETE_VARIABLE, instruction)
    with stagewire_group.make_context("stagewire", arguments, obj=program) as context:
        result = stagewire_group.invoke(context)
    return result if isinstance(result, int) else Exit.OK


def _report(error: Exception, *, debug: bool) -> int:
    if debug:
        tell("".join(traceback.format_exception(error)).rstrip())
    for line in lines_of(error):
        tell(line)
    return status_of(error)


class _FromPlugins(Group):
    """Takes its commands from the catalog."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(command.name) for command in ctx.ensure_object(Program).catalog.commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        try:
            return ctx.ensure_object(Program).command(cmd_name)
        except PluginError as error:
            if ctx.resilient_parsing:  # the shell completes a name
                return None
            raise click.UsageError(str(error), ctx) from error


@click.group(cls=_FromPlugins, epilog=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stagewire", message="%(prog)s %(version)s")
def stagewire_group() -> None:
    """Wire stages into pipelines: check a pipeline's file, look at it, and run it."""
