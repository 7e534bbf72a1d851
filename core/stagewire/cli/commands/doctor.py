"""``stagewire doctor``."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Sequence

import click

import stagewire
from stagewire.cli import description
from stagewire.cli.exits import Exit
from stagewire.cli.options import Command
from stagewire.cli.program import Program, pass_program
from stagewire.registry import ALLOW_VARIABLE, BLOCK_VARIABLE, Catalog, PluginRecord, PluginState

UNHEALTHY = (PluginState.BROKEN, PluginState.CONFLICT)


@click.command("doctor", cls=Command)
@pass_program
@click.pass_context
def command(context: click.Context, program: Program) -> None:
    """Say what is wrong with this installation.

    Names its parts, what cannot be used of them, and what to do.
    """
    catalog = program.catalog
    click.echo(f"stagewire  {stagewire.__version__}")
    click.echo(f"python     {platform.python_version()} ({sys.executable})")
    click.echo(f"platform   {platform.platform()}")
    click.echo("")
    click.echo("\n".join(description.plugin_lines(catalog.plugins())))
    for line in _advice(catalog):
        click.echo(line)
    if any(plugin.state in UNHEALTHY for plugin in catalog.plugins()):
        context.exit(Exit.FAILED)


def _advice(catalog: Catalog) -> Iterator[str]:
    plugins = catalog.plugins()
    unmatched = catalog.selection.unmatched(plugin.name for plugin in plugins)
    if unmatched:
        yield ""
        yield f"{BLOCK_VARIABLE} or {ALLOW_VARIABLE} names what is not installed: {', '.join(unmatched)}"
    troubled = sum(plugin.state in UNHEALTHY for plugin in plugins)
    yield ""
    yield f"{troubled} of {len(plugins)} plugins need mending" if troubled else _verdict(plugins)


def _verdict(plugins: Sequence[PluginRecord]) -> str:
    lacking = [plugin.name for plugin in plugins if plugin.state is PluginState.NEEDS_EXTRA]
    if not lacking:
        return "all is well"
    return f"all is well but for what an optional install would bring: {', '.join(lacking)}"
