"""The commands ``agent``, ``put``, ``get``, ``ls``, ``stat`` and ``rm`` (WS-21)."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from stagewire.cli import Command, Observe, Program, config_argument, display, json_option, pass_program

DEADLINE = 30.0
VARIABLE = "STAGEWIRE_WRITES"
"""Names the configuration for the clients, where ``--config`` does not."""

_configs = click.option(
    "-c",
    "--config",
    "configs",
    metavar="FILE",
    multiple=True,
    required=True,
    envvar=VARIABLE,
    type=click.Path(),
    help=f"The agents' configuration; repeat it to lay one over another. Default: the environment variable {VARIABLE}.",
)
_place = click.argument("place", metavar="EXPORT/PATH")
_quiet = click.option("--quiet", is_flag=True, help="Show no progress.")


@click.command("agent", cls=Command)
@config_argument
@click.option("--export", metavar="NAME", required=True, help="Serve this export of the configuration.")
@click.option("--node", metavar="NAME", help="This agent's name; one of its own for each. Default: the host's name.")
@click.option(
    "--deadline",
    metavar="SECONDS",
    default=DEADLINE,
    show_default=True,
    type=click.FloatRange(min=0),
    help="How long a stop may take before it is forced.",
)
@pass_program
@click.pass_context
def agent(context: click.Context, program: Program, /, **options: Any) -> None:
    """Serve an export: take files from write sessions, until SIGTERM or Ctrl-C."""
    from stagewire_writes.client import serve  # noqa: PLC0415 — takes time that `--help` need not pay

    context.exit(serve(program, **options))


@click.command("put", cls=Command)
@click.argument("file", metavar="FILE")
@_place
@_configs
@_quiet
@json_option("Print what was written as one JSON object.")
@pass_program
@click.pass_context
def put(context: click.Context, program: Program, /, *, quiet: bool, place: str, **options: Any) -> None:
    """Write FILE (- is standard input) to an export: all of it, or nothing."""
    from stagewire_writes.client import put_file  # noqa: PLC0415 — same

    with _watched(place, quiet=quiet) as observe:
        finish = put_file(program, place=place, observe=observe, **options)
    context.exit(finish())


@click.command("get", cls=Command)
@_place
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@_configs
@_quiet
@pass_program
@click.pass_context
def get(context: click.Context, program: Program, /, *, quiet: bool, place: str, **options: Any) -> None:
    """Read a file of an export into FILE (- is standard output)."""
    from stagewire_writes.client import get_file  # noqa: PLC0415 — same

    with _watched(place, quiet=quiet) as observe:
        status = get_file(program, place=place, observe=observe, **options)
    context.exit(status)


@click.command("ls", cls=Command)
@click.argument("place", metavar="EXPORT[/PATH]")
@_configs
@click.option("-l", "--long", "long_", is_flag=True, help="Show sizes and times.")
@json_option("Print one JSON object for each entry.")
@pass_program
@click.pass_context
def ls(context: click.Context, program: Program, /, **options: Any) -> None:
    """List a directory of an export, in the order of the names."""
    from stagewire_writes.client import list_directory  # noqa: PLC0415 — same

    context.exit(list_directory(program, **options))


@click.command("stat", cls=Command)
@_place
@_configs
@json_option("Print one JSON object.")
@pass_program
@click.pass_context
def stat(context: click.Context, program: Program, /, **options: Any) -> None:
    """Show size, time and version of a file or directory of an export."""
    from stagewire_writes.client import show_entry  # noqa: PLC0415 — same

    context.exit(show_entry(program, **options))


@click.command("rm", cls=Command)
@click.argument("places", metavar="EXPORT/PATH...", nargs=-1, required=True)
@_configs
@pass_program
@click.pass_context
def rm(context: click.Context, program: Program, /, **options: Any) -> None:
    """Remove files, or empty directories, of exports."""
    from stagewire_writes.client import remove  # noqa: PLC0415 — same

    context.exit(remove(program, **options))


COMMANDS = (agent, put, get, ls, stat, rm)


def _watched(title: str, *, quiet: bool) -> AbstractContextManager[Observe]:
    """Return a progress bar where somebody watches (WS-20)."""
    return display(title) if sys.stderr.isatty() and not quiet else nullcontext(lambda _progress: None)
