"""``stagewire config``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stagewire.cli.options import Group, config_argument
from stagewire.cli.program import Program, pass_program
from stagewire.errors import format_path

if TYPE_CHECKING:
    from stagewire.config import EffectiveValue

WIDEST = 60
"""Origins stand in a column no further right than this."""


@click.group("config", cls=Group)
def command() -> None:
    """Look at a configuration."""


@command.command("show")
@config_argument
@click.option("--origin", is_flag=True, help="Say where each value comes from: file, line and column, or default.")
@pass_program
def show(program: Program, config: str, overlays: tuple[str, ...], *, origin: bool) -> None:
    """Print every value that a configuration comes to, defaults included and secrets hidden."""
    from stagewire.config import effective  # noqa: PLC0415 — the loader takes time that `--help` need not pay

    values = effective(program.load(config, overlays))
    lines = [f"{format_path(value.path)}: {value.text}" for value in values]
    width = min(WIDEST, max(len(line) for line in lines))
    for value, line in zip(values, lines, strict=True):
        click.echo(f"{line:<{width}}  # {_origin(value)}" if origin else line)


def _origin(value: EffectiveValue) -> str:
    if value.location is None:
        return value.source
    return str(value.location) if value.source == "file" else f"{value.location} ({value.source})"
