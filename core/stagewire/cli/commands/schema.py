"""``stagewire schema``."""

from __future__ import annotations

import json

import click

from stagewire.cli.options import Command
from stagewire.cli.program import Program, pass_program


@click.command("schema", cls=Command)
@pass_program
def command(program: Program) -> None:
    """Print the JSON Schema of a pipeline's file.

    It is made from the installed plugins. An editor that knows YAML schemas completes and checks the file with it.
    """
    from stagewire.config import json_schema  # noqa: PLC0415 — the loader takes time that `--help` need not pay

    click.echo(json.dumps(json_schema(program.catalog), indent=2))
