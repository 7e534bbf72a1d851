"""What to read and which of its lines count, from what a person gave on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from stagewire import StagewireError
from stagewire_logs.filters import Filter
from stagewire_logs.sources import Part, part_of, with_rotated
from stagewire_logs.times import moment


@dataclass(frozen=True, slots=True)
class Input:
    """What to read, and which of its lines count."""

    parts: Sequence[Part]
    problems: Sequence[tuple[str, str]]
    keep: Filter


def input_of(
    *,
    files: Sequence[str],
    since: str | None = None,
    until: str | None = None,
    level: str | None = None,
    events: Sequence[str] = (),
    ids: Sequence[str] = (),
    rotated: bool = False,
    look: bool = True,
) -> Input:
    """Build the filter and look at the files. Those that cannot be read are kept as problems: the others go on.

    Args:
        files: Their names; none, or ``-``, is standard input.
        since: The earliest time, as a person gives it.
        until: The first time that is too late.
        level: The quietest level.
        events: Patterns of events.
        ids: Ids of which a line must have one.
        rotated: Whether what the files were rotated to is read as well.
        look: Whether the files are looked at; otherwise there are no parts.

    Raises:
        click.UsageError: A time cannot be understood, or there is nothing to read.
    """
    names = (list(files) or ["-"]) if look else []
    if names == ["-"] and sys.stdin.isatty():
        raise click.UsageError("name a FILE, or send a log to standard input")
    now = datetime.now(UTC)
    try:
        keep = Filter(_moment(since, now), _moment(until, now), level or "", tuple(events), frozenset(ids))
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    parts, problems = [], []
    if rotated:
        names = [each for name in names for each in ([name] if name == "-" else with_rotated(name))]
    for name in names:
        try:
            parts.append(part_of(name))
        except StagewireError as error:
            problems.append((name, str(error).removeprefix(f"{name}: ")))
    return Input(parts, problems, keep)


def _moment(text: str | None, now: datetime) -> str:
    return moment(text, now) if text else ""
