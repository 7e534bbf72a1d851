"""``stagewire check``."""

from __future__ import annotations

import click

from stagewire.cli.exits import Exit
from stagewire.cli.faults import lines_of
from stagewire.cli.options import Command, overlay_option
from stagewire.cli.program import Program, pass_program
from stagewire.errors import ConfigError, StagewireError


@click.command("check", cls=Command)
@click.argument("configs", metavar="CONFIG...", nargs=-1, required=True, type=click.Path())
@overlay_option
@pass_program
@click.pass_context
def command(context: click.Context, program: Program, configs: tuple[str, ...], overlays: tuple[str, ...]) -> None:
    """Check pipelines' files.

    Does all that run does, up to opening a connection. Every fault of every file is printed as file:line:column: path:
    message.
    """
    sound = [_is_sound(program, config, overlays) for config in configs]
    if not all(sound):
        context.exit(Exit.USAGE)


def _is_sound(program: Program, config: str, overlays: tuple[str, ...]) -> bool:
    try:
        loaded = program.load(config, overlays)
        program.app.build(loaded)
    except StagewireError as error:
        if program.debug:
            raise
        place = "" if isinstance(error, ConfigError) else f"{config}: "
        for line in lines_of(error):
            click.echo(place + line, err=True)
        return False
    click.echo(f"{config}: ok, pipeline {loaded.name!r} of kind {loaded.kind.name!r}")
    return True
