"""Tables without lines, as text."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterable, Sequence

INDENT = "    "
WIDEST = 120
"""Columns beyond which a text is hard to read, however wide the terminal is."""


def width() -> int:
    """Return how many columns there are: those of the terminal, else 80."""
    return min(WIDEST, shutil.get_terminal_size((80, 24)).columns)


def table(
    rows: Iterable[Sequence[str]], header: Sequence[str] = ("", ""), *, right: int | None = None, indent: int = 0
) -> str:
    """Return a table of texts, within `width` columns.

    Args:
        rows: The cells.
        header: The titles of the columns; none is shown when all are empty.
        right: The column from which on there are numbers.
        indent: Columns to its left.
    """
    # Only some commands need it, and it takes 0.15 s.
    from rich.console import Console  # noqa: PLC0415
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    made = Table(box=None, padding=(0, 2, 0, 0), show_header=any(header))
    for index, title in enumerate(header):
        numeric = right is not None and index >= right
        made.add_column(title, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    text = io.StringIO()  # rich ends the program when it writes to a stream that nobody reads
    styled = sys.stdout.isatty()
    console = Console(file=text, force_terminal=styled, width=width(), highlight=False, markup=False, emoji=False)
    console.print(Padding(made, (0, 0, 0, indent), expand=False))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())
