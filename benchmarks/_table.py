"""What a benchmark reports: one row a figure, with its ratio to a peer that was measured in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        name: What was measured, and of whom.
        value: The median.
        unit: Of the value; names in words, such as ``chunks/s``.
        ratio_to: The peer that it is compared with; ``None`` for a peer itself.
        ratio: Ours divided by the peer's.
    """

    name: str
    value: float
    unit: str
    ratio_to: str | None = None
    ratio: float | None = None


def interleave(subjects: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Measure every subject once per round, in turn, and return each one's median.

    The machine is shared: what disturbs one round disturbs all subjects in it, and the medians forget it.
    """
    results: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, measure in subjects.items():
            results[name].append(measure())
    return {name: statistics.median(values) for name, values in results.items()}


def show(title: str, rows: Sequence[Row], console: Console | None = None) -> None:
    """Print the rows as a table."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("what")
    table.add_column("median", justify="right")
    table.add_column("unit")
    table.add_column("ratio", justify="right")
    table.add_column("to")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(row.name, f"{row.value:,.4g}", row.unit, ratio, row.ratio_to or "")
    (console or Console(width=110)).print(table)
