"""``stagewire graph``."""

from __future__ import annotations

import click

from stagewire.cli.options import Command, config_argument
from stagewire.cli.program import Program, pass_program


@click.command("graph", cls=Command)
@config_argument
@pass_program
def command(program: Program, config: str, overlays: tuple[str, ...]) -> None:
    """Print the pipeline as a Mermaid flowchart."""
    loaded = program.load(config, overlays)
    click.echo(program.app.build(loaded).graph().rstrip())
