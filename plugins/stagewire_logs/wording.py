"""Numbers, sizes and times as people read them."""

from __future__ import annotations

from stagewire_logs.results import PipelineReport, WriteReport

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def number(count: float) -> str:
    """Return a count."""
    return f"{count:,.0f}"


def counted(count: int, what: str) -> str:
    """Return a count with its noun, in the plural where that is due."""
    return f"{number(count)} {what}" + ("" if count == 1 else "s")


def size(count: float) -> str:
    """Return bytes with a unit."""
    value = float(count)
    for unit in _SIZES[:-1]:
        if value < 1024:  # noqa: PLR2004 — the unit's step
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_SIZES[-1]}"


def seconds(value: float) -> str:
    """Return a duration with a unit that suits it."""
    if value >= 3600:  # noqa: PLR2004 — an hour
        return f"{value / 3600:.1f} h"
    if value >= 60:  # noqa: PLR2004 — a minute
        return f"{value / 60:.1f} min"
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} us"  # noqa: PLR2004 — a millisecond


def clock(stamp: str) -> str:
    """Return a timestamp as date and time of day, to the second."""
    return f"{stamp[5:10]} {stamp[11:19]}" if stamp else "—"


def ended_of(report: PipelineReport) -> str:
    """Return what became of a pipeline's requests."""
    if not (report.ended or report.failed or report.cancelled or report.unfinished):
        return "no requests"
    parts = [f"{number(report.ended)} ended"]
    parts += [
        f"{number(count)} {what}"
        for what, count in (("failed", report.failed), ("cancelled", report.cancelled))
        if count
    ]
    return ", ".join([*parts, f"{number(report.unfinished)} unfinished"] if report.unfinished else parts)


def rate_of(report: PipelineReport) -> str:
    """Return how many requests ended per second, to stand after what became of them; nothing when none did."""
    return f", {report.per_second:,.1f}/s" if report.per_second else ""


def write_rows(report: WriteReport) -> list[tuple[str, str]]:
    """Return what a write report says, row by row; rows that say nothing are left out."""
    repeats = [(report.retries, "retries"), (report.duplicates, "frames recognised as repeats")]
    leases = [(report.keepalive_failures, "keepalives failed"), (report.leases_lost, "leases lost")]
    durations = report.seconds
    rows = [
        ("sessions", _listed([(count, state) for state, count in report.sessions.items()])),
        ("bytes", ", ".join(f"{size(count)} by {path}" for path, count in report.bytes.items() if count)),
        ("lasted", f"p50 {seconds(durations.p50)}, p95 {seconds(durations.p95)}" if durations else ""),
        ("degraded", "; ".join(f"{counted(count, 'time')} {cause}" for cause, count in report.degraded.items())),
        ("repeats", _listed(repeats)),
        ("leases", _listed(leases)),
        ("keys", _listed([(report.pending_keys, "awaiting cleanup")])),
    ]
    return [row for row in rows if row[1]]


def _listed(counts: list[tuple[int, str]]) -> str:
    return ", ".join(f"{number(count)} {what}" for count, what in counts if count)
