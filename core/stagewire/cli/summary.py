"""What a run came to: a table for a person, one object for a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stagewire.cli.tables import table
from stagewire.spec.pipeline import OutputFile, RunReport

STEP = 1000


def as_text(report: RunReport) -> str:
    """Return the summary table and the files written. Readable at 80 columns."""
    parts = [table(report.rows)] if report.rows else []
    if report.outputs:
        parts.append(table(_output_rows(report.outputs), ("file", "stage", "chunks", "size"), right=2))
    return "\n\n".join(parts) + "\n" if parts else ""


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
