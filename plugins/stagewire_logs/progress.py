"""A progress bar on a terminal, while a large log is read (LG-7)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from stagewire_logs.sources import Part
from stagewire_logs.tally import Tally

WORTH = 64 * 1024 * 1024
"""Bytes from which on a bar is shown."""


def shown(tallies: Iterator[tuple[str, Tally]], parts: Sequence[Part]) -> Iterator[tuple[str, Tally]]:
    """Yield the tallies, and show on standard error how far they are, where a person looks at it.

    The bar is drawn between two tallies, not by a thread: the worker processes are forked from this one.
    """
    total = sum(part.size for part in parts)
    if total < WORTH or not sys.stderr.isatty():
        yield from tallies
        return
    from rich import progress as rich  # noqa: PLC0415 — takes 0.15 s, and only a terminal needs it
    from rich.console import Console  # noqa: PLC0415 — same

    plain = all(part.path is not None and not part.compression for part in parts)
    columns = (rich.TextColumn("reading"), rich.BarColumn(), rich.DownloadColumn(), rich.TransferSpeedColumn())
    with rich.Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=total if plain else None)
        for name, tally in tallies:
            yield name, tally
            bar.update(task, advance=tally.size, refresh=True)
