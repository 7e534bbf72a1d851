"""The plugin that brings the program's own commands: one for each module of `stagewire.cli.commands`."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from stagewire.cli import commands
from stagewire.spec.hooks import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def stagewire_commands() -> list[click.Command]:
    """Offer what each module calls ``command``."""
    modules = [import_module(each.name) for each in pkgutil.iter_modules(commands.__path__, f"{commands.__name__}.")]
    return [module.command for module in modules]
