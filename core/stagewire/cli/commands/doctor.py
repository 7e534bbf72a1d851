"""``stagewire doctor``."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Iterator, Sequence

import click

import stagewire
from stagewire.cli import description
from stagewire.cli.exits import Exit
from stagewire.cli.faults import lines_of
from stagewire.cli.options import Command, overlay_option
from stagewire.cli.program import Program, pass_program
from stagewire.errors import StagewireError
from stagewire.registry import ALLOW_VARIABLE, BLOCK_VARIABLE, Catalog, PluginRecord, PluginState

UNHEALTHY = (PluginState.BROKEN, PluginState.CONFLICT)


@click.command("doctor", cls=Command)
@click.argument("config", metavar="[CONFIG]", required=False, type=click.Path())
@overlay_option
@click.option("--connect", is_flag=True, help="Connect to the backends that CONFIG names, and say what answers.")
@pass_program
@click.pass_context
def command(
    context: click.Context, program: Program, config: str | None, overlays: tuple[str, ...], *, connect: bool
) -> None:
    """Say what is wrong with this installation.

    Names its parts, what cannot be used of them, and what to do. With CONFIG, says whether that can be built; with
    --connect too, whether its transport, KV and lease backend can be used.
    """
    if connect and config is None:
        raise click.UsageError("--connect needs a CONFIG that says what to connect to", context)
    catalog = program.catalog
    click.echo(f"stagewire  {stagewire.__version__}")
    click.echo(f"python     {platform.python_version()} ({sys.executable})")
    click.echo(f"platform   {platform.platform()}")
    click.echo("")
    click.echo("\n".join(description.plugin_lines(catalog.plugins())))
    for line in _advice(catalog):
        click.echo(line)
    if config is not None and not _can_be_used(program, config, overlays, connect=connect):
        context.exit(Exit.USAGE)
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


def _can_be_used(program: Program, config: str, overlays: tuple[str, ...], *, connect: bool) -> bool:
    loaded = program.load(config, overlays)
    program.app.build(loaded)
    click.echo("")
    click.echo(f"{config}: ok, pipeline {loaded.name!r} of kind {loaded.kind.name!r}")
    if not connect:
        return True
    outcomes = asyncio.run(program.app.probe(loaded))
    for name, outcome in outcomes.items():
        failed = isinstance(outcome, StagewireError)
        text = " ".join(lines_of(outcome)) if isinstance(outcome, StagewireError) else outcome
        click.echo(f"{name}: {text}", err=failed)
    return not any(isinstance(outcome, StagewireError) for outcome in outcomes.values())
