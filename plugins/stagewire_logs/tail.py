"""``stagewire logs tail``: lines as they come, readable, from any logger."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from stagewire_logs.filters import Filter
from stagewire_logs.follow import Follower
from stagewire_logs.pretty import pretty
from stagewire_logs.reading import Reader
from stagewire_logs.sources import part_of

PAUSE = 0.2
"""Seconds between two looks at files that have not grown."""


class Tail:
    """Prints what is added to files.

    Args:
        files: The files.
        keep: Which lines count.
        last: How many lines of each that are there already are printed; before the filter.
        raw: Print lines as they are, not readable ones.
    """

    def __init__(self, files: Sequence[str], keep: Filter, *, last: int, raw: bool) -> None:
        self._followers = [(Reader(name), Follower(Path(name), last)) for name in files]
        self._keep = keep
        self._raw = raw
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def step(self) -> bool:
        """Print what is new; returns whether there was anything."""
        any_new = False
        for reader, follower in self._followers:
            for block in follower.read():
                any_new = True
                for text in self._texts(reader, block):
                    click.echo(text)
        return any_new

    def run(self) -> None:
        """Go on until Ctrl-C, or until nobody reads any more."""
        while True:
            if not self.step():
                time.sleep(PAUSE)

    def close(self) -> None:
        """Close the files."""
        for _, follower in self._followers:
            follower.close()

    def _texts(self, reader: Reader, block: bytes) -> Iterator[str]:
        """Yield the lines of a block in their order; those that are no JSON as they are, unless there is a filter."""
        for raw in block.splitlines():
            batch = self._keep.apply(reader.read(raw + b"\n")) if raw.strip() else None
            if batch is None:
                continue
            if not batch.lines:
                if self._keep.open:
                    yield "".join(char if char.isprintable() else " " for char in raw.decode("utf-8", "replace"))
                continue
            line, detail = batch.lines[0], batch.detail(0)
            if self._raw:
                yield raw.decode("utf-8", "replace")
            else:
                shown = {**detail, "pipeline": line.pipeline}
                yield pretty(line.timestamp, line.level, line.event, shown, colour=self._colour)


def tail(files: Sequence[str], keep: Filter, *, last: int, raw: bool, follow: bool) -> None:
    """Print the end of the files and, unless told otherwise, what is added to them.

    Raises:
        StagewireError: Nothing is followed and a file is not there.
    """
    if not follow:
        for name in files:
            part_of(name)
    printer = Tail(files, keep, last=last, raw=raw)
    try:
        if follow:
            printer.run()
        else:
            printer.step()
    finally:
        printer.close()
