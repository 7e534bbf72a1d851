"""Errors as lines for a person, and as exit statuses."""

from __future__ import annotations

import click

from stagewire.cli.exits import Exit
from stagewire.errors import ConfigError, PluginError, StagewireError, describe

_HELP: tuple[type[click.ClickException], ...] = tuple(
    found for name in ("NoArgsIsHelpError",) if (found := getattr(click.exceptions, name, None)) is not None
)
"""What newer versions of click raise for a group without a command; older ones print its help themselves."""


def lines_of(error: BaseException) -> list[str]:
    """Return what to print about an error, one line per fault. A configuration's faults begin with their place."""
    if isinstance(error, ConfigError):
        return [_one_line(str(problem)) for problem in error.problems]
    if isinstance(error, _HELP):
        return error.format_message().splitlines()
    if isinstance(error, click.ClickException):
        return [f"error: {_one_line(error.format_message())}{_help_hint(error)}"]
    if isinstance(error, StagewireError):
        return [f"error: {_one_line(str(error))}"]
    return [f"error: {_one_line(describe(error))} (unexpected; --debug shows where it came from)"]


def status_of(error: BaseException) -> int:
    """Return the exit status that an error leads to."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    opening = isinstance(error, StagewireError) and error.while_opening
    return Exit.USAGE if opening or isinstance(error, ConfigError | PluginError) else Exit.FAILED


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _help_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f" (see `{context.command_path} --help`)" if context is not None else ""
