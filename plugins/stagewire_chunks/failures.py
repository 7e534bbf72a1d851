"""Requests that failed on the sending side, until the scheduling thread has taken note (CH-15)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from stagewire import RequestFailed

KEPT = 4_096
"""Reports that are kept for an owner who does not take them; the oldest go first."""


@dataclass(slots=True)
class _Report:
    error: RequestFailed
    producing: bool


class Failures:
    """Reports by request. Not thread-safe.

    The producer of a failed request may not know of it yet and go on saving: what it saves up to and including its
    final belongs to the failed use and is absorbed, so that no second terminal comes of it (CH-18). Taking the report
    ends that: whoever has taken it knows that a later save begins the next use.
    """

    def __init__(self) -> None:
        self._reports: OrderedDict[str, _Report] = OrderedDict()

    def __len__(self) -> int:
        return len(self._reports)

    def add(self, error: RequestFailed, *, producing: bool) -> None:
        """Add a report; ``producing`` when the final of the failed use has not been saved yet."""
        self._reports.pop(error.request_id, None)
        self._reports[error.request_id] = _Report(error, producing)
        if len(self._reports) > KEPT:
            self._reports.popitem(last=False)

    def absorbs(self, request: str, *, is_final: bool) -> bool:
        """Return whether a save belongs to a use that failed; its final is the last that does."""
        report = self._reports.get(request)
        if report is None or not report.producing:
            return False
        report.producing = not is_final
        return True

    def release(self, request: str) -> None:
        """Let the next save begin a new use: the producer was told to stop."""
        report = self._reports.get(request)
        if report is not None:
            report.producing = False

    def take(self) -> dict[str, Exception]:
        """Return the reports since the last call."""
        taken: dict[str, Exception] = {request: report.error for request, report in self._reports.items()}
        self._reports.clear()
        return taken
