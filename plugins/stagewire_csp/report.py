"""The final account of a run: every T, every Q, every slot and permit (CSP-15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stagewire import Failure, OutputFile, RunReport
from stagewire_csp.failures import RoleFailed
from stagewire_csp.snapshot import SideState, Snapshot

STAGE_OF = {"produce": "t", "send": "q", "receive": "q", "consume": "c"}
"""Under which section of the YAML file each role stands."""


@dataclass(frozen=True, slots=True)
class CspReport:
    """How a run ended.

    Attributes:
        state: The last state.
        failures: The failures of roles that are named, at most 100; ``state.failures`` counts them all.
        reason: Why the run was stopped; ``None`` when it came to its end.
        gave_up: Whether it was stopped because a role failed too often in a row.
        cut_off: Whether the deadline passed and work was cut off.
        stuck: The workers that did not end although they were cancelled.
    """

    state: Snapshot
    failures: Sequence[RoleFailed] = ()
    reason: str | None = None
    gave_up: bool = False
    cut_off: bool = False
    stuck: Sequence[str] = ()

    @property
    def balanced(self) -> bool:
        """Whether everything is accounted for and nothing is held any more."""
        state = self.state
        permits = (state.t.slots, state.q.slots, state.physical, state.q_pending)
        held = any(each.held or each.waiting for each in permits)
        return state.t.balanced and state.q.balanced and not held and not state.requests.in_flight and not self.stuck

    def rows(self) -> list[tuple[str, str]]:
        """Return the summary for a person."""
        state = self.state
        requests = state.requests
        given = f"{requests.sent} sent, {requests.answered} answered, {requests.failed} failed"
        rows = [
            ("pairs consumed", f"{state.pairs}"),
            ("T", _fate(state.t)),
            ("Q", _fate(state.q)),
            ("requests", f"{given}, {requests.given_up} given up"),
            ("failures", ", ".join(f"{role} {count}" for role, count in state.failures.items()) or "none"),
            ("seconds", f"{state.uptime:.1f}"),
            ("books", "balanced" if self.balanced else f"NOT balanced: {self._held()}"),
        ]
        return rows if self.reason is None else [*rows, ("stopped", self.reason)]

    def details(self) -> dict[str, Any]:
        """Return the same for programs: JSON-able."""
        return {
            "state": asdict(self.state),
            "balanced": self.balanced,
            "reason": self.reason,
            "gave_up": self.gave_up,
            "cut_off": self.cut_off,
            "stuck": list(self.stuck),
        }

    def run_report(self, outputs: Sequence[OutputFile] = ()) -> RunReport:
        """Return it as what every pipeline kind returns, with the files that the roles wrote."""
        failures = [Failure(failure.role, STAGE_OF[failure.role], failure.cause) for failure in self.failures]
        if not self.balanced:
            failures.append(Failure("books", "csp", self._held()))
        stopped = self.reason is not None
        return RunReport(outputs, failures, rows=self.rows(), details=self.details(), stopped=stopped)

    def _held(self) -> str:
        state = self.state
        held = {
            "t_slot": state.t.slots.held,
            "q_slot": state.q.slots.held,
            "physical": state.physical.held,
            "q_pending": state.q_pending.held,
        }
        still = ", ".join(f"{name} {count}" for name, count in held.items() if count)
        stuck = f"workers that ignore their cancel: {', '.join(self.stuck)}" if self.stuck else ""
        return "; ".join(part for part in (f"still held: {still or 'nothing'}", stuck) if part)


def _fate(side: SideState) -> str:
    return (
        f"{side.produced} made, {side.consumed} consumed, {side.written_off} written off, {side.expired} expired,"
        f" {side.depth} in stock"
    )
