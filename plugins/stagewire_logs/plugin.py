"""The plugin: brings ``stagewire logs``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stagewire import hookimpl
from stagewire_logs.command import command


@hookimpl
def stagewire_commands() -> Sequence[click.Command]:
    """Offer ``stagewire logs``."""
    return (command,)
