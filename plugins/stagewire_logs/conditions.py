"""``--fail-on``: conditions on what was found, for CI."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

import click

from stagewire import did_you_mean
from stagewire_logs.lines import ERRORS
from stagewire_logs.results import Percentiles, Summary

_CONDITION = re.compile(r"\s*([a-z_0-9]+)\s*(?:(>=|<=|>|<|==)\s*([0-9.]+)\s*)?")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}

FINDINGS = (
    "request_failed", "request_hung", "csp_books", "csp_leak", "csp_unbalanced", "csp_stall", "csp_starvation",
    "csp_no_reports", "session_degraded", "session_failed", "session_hung", "lease_lost",
)  # fmt: skip
"""Kinds of findings that a condition may name, beside those that a log has."""


def measures(summary: Summary) -> dict[str, float]:
    """Return what conditions may be about: counts, and end-to-end percentiles (s) of the slowest pipeline."""
    found = dict.fromkeys(FINDINGS, 0.0)
    for finding in summary.findings:
        found[finding.kind] = found.get(finding.kind, 0.0) + finding.count
    requests = summary.pipelines
    return {
        **found,
        "findings": len(summary.findings),
        "errors": sum(summary.levels.get(level, 0) for level in ERRORS),
        "warnings": summary.levels.get("warning", 0),
        "damage": sum(each.count for each in summary.damage),
        "records": summary.records,
        "requests": sum(each.ended + each.failed + each.cancelled for each in requests),
        "failed": sum(each.failed for each in requests),
        **{name: max((_of(each.seconds, name) for each in requests), default=0.0) for name in ("p50", "p95", "p99")},
    }


def _of(seconds: Percentiles | None, name: str) -> float:
    return float(getattr(seconds, name)) if seconds is not None else 0.0


class Condition:
    """One condition: ``findings`` (any at all), ``errors>10``, ``p99>2.5``, ``csp_leak``.

    Args:
        text: As the person gave it.

    Raises:
        click.UsageError: It cannot be understood; the text says what can.
    """

    def __init__(self, text: str) -> None:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise click.UsageError(
                f"--fail-on {text!r}: give NAME, or NAME and a comparison: findings, errors>10, p99>=2.5"
            )
        self.text = text
        self.name = match[1]
        self._compare = _COMPARE[match[2] or ">"]
        try:
            self._number = float(match[3] or 0)
        except ValueError as error:
            raise click.UsageError(f"--fail-on {text!r}: {match[3]!r} is no number") from error

    def holds(self, found: Mapping[str, float]) -> bool:
        """Whether it holds.

        Raises:
            click.UsageError: There is no such measure.
        """
        if self.name not in found:
            hint = did_you_mean(self.name, found)
            raise click.UsageError(f"--fail-on {self.text!r}: no measure is called {self.name!r}{hint}")
        return self._compare(found[self.name], self._number)
