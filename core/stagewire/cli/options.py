"""What several commands have in common: their class, and the options that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stagewire.cli.program import Program

F = TypeVar("F", bound=Callable[..., Any])


def _set_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:  # noqa: FBT001 — click's call
    if value:
        context.ensure_object(Program).debug = True
    return value


DEBUG = click.Option(
    ["--debug"], is_flag=True, expose_value=False, is_eager=True, callback=_set_debug, help="Show tracebacks of errors."
)
"""``--debug``, before the command's name or after it."""


class Command(click.Command):
    """A command that takes ``--debug``."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, ``--debug`` among them."""
        return _with_debug(super().get_params(ctx))


class Group(click.Group):
    """A command with subcommands that takes ``--debug``."""

    command_class = Command

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, ``--debug`` among them."""
        return _with_debug(super().get_params(ctx))


def _with_debug(parameters: list[click.Parameter]) -> list[click.Parameter]:
    help_option = [each for each in parameters if each.name == "help"]
    return [*(each for each in parameters if each.name != "help"), DEBUG, *help_option]


def config_argument(function: F) -> F:
    """Add the argument CONFIG and the repeatable option ``-c``."""
    function = overlay_option(function)
    return click.argument("config", metavar="CONFIG", type=click.Path())(function)


def overlay_option(function: F) -> F:
    """Add the repeatable option ``-c``."""
    return click.option(
        "-c",
        "--config",
        "overlays",
        metavar="FILE",
        multiple=True,
        type=click.Path(),
        help="Lay this file over CONFIG; maps merge, lists are replaced, null deletes. May be repeated.",
    )(function)


def json_option(help_text: str) -> Callable[[F], F]:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help=help_text)
