"""What a run came to: a table for a person, one object for a program."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stagewire.spec.pipeline import OutputFile, RunReport

if TYPE_CHECKING:
    from rich.table import Table

STEP = 1000


def as_text(report: RunReport) -> str:
    """Return the summary table and the files written, as wide as standard output. Readable at 80 columns."""
    from rich.console import Console  # noqa: PLC0415 — the run has loaded it by now; the other commands need none of it

    text = io.StringIO()  # rich ends the program when it writes to a stream that nobody reads
    console = Console(file=text, force_terminal=sys.stdout.isatty(), highlight=False, markup=False, emoji=False)
    if report.rows:
        console.print(_table(report.rows))
    if report.outputs:
        if report.rows:
            console.print()
        console.print(_table(_output_rows(report.outputs), header=("file", "stage", "chunks", "size"), right=2))
    return text.getvalue()


def as_json(report: RunReport, pipeline: str, kind: str) -> dict[str, Any]:
    """Return the same for programs, JSON-able."""
    return {
        "ok": not report.failures and not report.stopped,
        "pipeline": pipeline,
        "kind": kind,
        "stopped": report.stopped,
        "outputs": [
            {"path": str(each.path), "stage": each.stage, "chunks": each.chunks, "bytes": each.bytes}
            for each in report.outputs
        ],
        "failures": [{"subject": each.subject, "stage": each.stage, "cause": each.cause} for each in report.failures],
        "summary": dict(report.rows),
        "details": dict(report.details),
    }


def failure_lines(report: RunReport) -> list[str]:
    """Return one line for each failure."""
    return [f"failed: {each.subject} in stage {each.stage}: {' '.join(each.cause.split())}" for each in report.failures]


def size(count: int) -> str:
    """Return a number of bytes as a person says it: ``3.2 MB``."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < STEP:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= STEP
    return f"{amount:.1f} TB"


def _output_rows(outputs: Iterable[OutputFile]) -> list[tuple[str, ...]]:
    return [(str(each.path), each.stage, f"{each.chunks:,}", size(each.bytes)) for each in outputs]


def _table(rows: Iterable[Sequence[str]], header: Sequence[str] = ("", ""), right: int | None = None) -> Table:
    """Make a table without lines. Columns from ``right`` on hold numbers; long texts fold, so that none is cut."""
    from rich.table import Table  # noqa: PLC0415 — see print_summary
    from rich.text import Text  # noqa: PLC0415 — same

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=any(header))
    for index, title in enumerate(header):
        numeric = right is not None and index >= right
        table.add_column(title, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
