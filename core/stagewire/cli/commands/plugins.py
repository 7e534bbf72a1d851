"""``stagewire plugins``."""

from __future__ import annotations

import json

import click

from stagewire.cli import description
from stagewire.cli.options import Group, json_option
from stagewire.cli.program import Program, pass_program

AS_JSON = json_option("Print JSON for programs.")


@click.group("plugins", cls=Group, invoke_without_command=True)
@AS_JSON
@click.pass_context
def command(context: click.Context, *, as_json: bool) -> None:
    """List the plugins, or show one."""
    if context.invoked_subcommand is None:
        context.invoke(list_plugins, as_json=as_json)


@command.command("list")
@AS_JSON
@pass_program
def list_plugins(program: Program, *, as_json: bool) -> None:
    """List the plugins with their state, what each offers and, where one is not usable, the reason."""
    if as_json:
        click.echo(json.dumps([description.plugin_data(plugin) for plugin in program.catalog.plugins()], indent=2))
    else:
        click.echo("\n".join(description.listing(program.catalog)))


@command.command("show")
@click.argument("name")
@AS_JSON
@pass_program
def show(program: Program, name: str, *, as_json: bool) -> None:
    """Show a plugin, or what a plugin offers: its summary, its options and what it needs."""
    found = description.find(program.catalog, name)
    if as_json:
        click.echo(json.dumps(found.data, indent=2))
    else:
        click.echo("\n".join(found.lines))
