"""``stagewire version``."""

from __future__ import annotations

import click

import stagewire
from stagewire.cli.options import Command


@click.command("version", cls=Command)
def command() -> None:
    """Print the version."""
    click.echo(f"stagewire {stagewire.__version__}")
