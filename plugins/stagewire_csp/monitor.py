"""Watches a run and says what it sees: read-only (CSP-10, CSP-16)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from stagewire import emit
from stagewire_csp.findings import Detective, Finding
from stagewire_csp.inventory import SIDES, Inventory, SideName
from stagewire_csp.rates import Rates
from stagewire_csp.settings import RunSettings
from stagewire_csp.snapshot import Snapshot

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

BEAT = 0.25
"""Seconds between two looks at how late the event loop is."""

SCAN = 10_000
"""How many of a side's stock are looked at to say that all have expired: some 0.5 ms of work, once per report."""


@dataclass(frozen=True, slots=True)
class MonitorReport:
    """One report of the monitor.

    Attributes:
        state: The state.
        rates: What happened per second since the report before.
        lateness: The most seconds by which the event loop was late since the report before.
        findings: What is wrong.
    """

    state: Snapshot
    rates: Rates
    lateness: float
    findings: tuple[Finding, ...]


class Monitor:
    """Makes a report every so often and emits it as ``csp.monitor``, a new finding as ``csp.finding`` too.

    Args:
        take: Takes a snapshot.
        inventory: Whose stock to look at for what has expired.
        settings: How often to report, and when a run counts as stalled.
        log: Where reports are emitted.
        on_beat: Takes a snapshot several times a second, for a live view; returns at once.
    """

    def __init__(
        self,
        take: Callable[[], Snapshot],
        inventory: Inventory,
        settings: RunSettings,
        *,
        log: FilteringBoundLogger,
        on_beat: Callable[[Snapshot], None] | None = None,
    ) -> None:
        self.last: MonitorReport | None = None
        """The last report."""
        self._take = take
        self._inventory = inventory
        self._interval = settings.monitor_interval
        self._detective = Detective(settings.stall_after)
        self._log = log
        self._on_beat = on_beat
        self._lateness = 0.0
        self._known: frozenset[tuple[str, SideName | None]] = frozenset()

    async def run(self) -> None:
        """Report until cancelled."""
        due = self._interval + asyncio.get_running_loop().time()
        while True:
            await self._rest_until(due)
            self.report()
            due = max(due + self._interval, asyncio.get_running_loop().time())

    def report(self) -> MonitorReport:
        """Make a report now and emit it."""
        state = self._take()
        before = self.last.state if self.last else None
        expired = frozenset(side for side in SIDES if self._inventory.all_expired(side, SCAN))
        findings = tuple(self._detective.look(state, all_expired=expired))
        self.last = MonitorReport(state, Rates.between(before, state), self._lateness, findings)
        self._lateness = 0.0
        emit(self._log, "csp.monitor", **event_fields(self.last))
        self._warn_of_new(findings)
        return self.last

    def _warn_of_new(self, findings: tuple[Finding, ...]) -> None:
        """Say each finding when it appears: the reports go on naming it as long as it lasts."""
        for finding in findings:
            if (finding.kind, finding.side) not in self._known:
                emit(self._log, "csp.finding", **asdict(finding))
        self._known = frozenset((finding.kind, finding.side) for finding in findings)

    async def _rest_until(self, due: float) -> None:
        """Sleep in short beats, so that one late beat shows and is not averaged away."""
        loop = asyncio.get_running_loop()
        while (now := loop.time()) < due:
            wake = min(now + BEAT, due)
            await asyncio.sleep(wake - now)
            self._lateness = max(self._lateness, loop.time() - wake)
            if self._on_beat is not None:
                self._on_beat(self._take())


def event_fields(report: MonitorReport) -> dict[str, object]:
    """Return the report as the fields of ``csp.monitor``."""
    state = report.state
    return {
        "wall": state.wall,
        "uptime": state.uptime,
        "t": asdict(state.t),
        "q": asdict(state.q),
        "physical": asdict(state.physical),
        "q_pending": asdict(state.q_pending),
        "claims": {"waiting": state.claims, "age": state.claim_age, "reserved": state.reserved},
        "requests": asdict(state.requests),
        "pairs": state.pairs,
        "role_failures": dict(state.failures),
        "rates": asdict(report.rates),
        "lateness": report.lateness,
        "findings": [
            {"kind": finding.kind, "side": finding.side, "seconds": finding.seconds} for finding in report.findings
        ],
    }
