"""What must be seen in order, and is rare enough to be kept one by one until it was."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from stagewire_logs.lines import Detail, Line

APP_EVENTS = frozenset({"app.started", "app.finished", "app.failed"})
CSP_EVENTS = frozenset({"csp.started", "csp.monitor", "csp.finished"})
LEASE_EVENTS = frozenset({"lease.keepalive_failed", "lease.lost", "key.left_behind", "key.table_full"})
TRANSPORT_EVENTS = frozenset({"transport.stats", "transport.dead_letter"})
SESSION_EVENTS = frozenset(
    {
        "session.opened",
        "session.degraded",
        "session.finalized",
        "session.aborted",
        "session.failed",
        "session.reaped",
        "session.closed",
        "write.small_put",
    }
)

FACTS = APP_EVENTS | CSP_EVENTS | LEASE_EVENTS | TRANSPORT_EVENTS | SESSION_EVENTS
"""The events that are kept."""


class Permit(Struct, gc=False):
    """A capacity: ``cap == free + held``."""

    cap: int
    free: int
    held: int
    waiting: int = 0


class Side(Struct, gc=False):
    """One side of a CSP stock, as its monitor reports it."""

    depth: int
    slots: Permit
    produced: int
    consumed: int
    written_off: int
    expired: int


class Claims(Struct, gc=False):
    """Who waits for a pair."""

    waiting: int = 0
    reserved: int = 0


class External(Struct, gc=False):
    """The external requests."""

    sent: int = 0
    answered: int = 0
    failed: int = 0
    given_up: int = 0
    in_flight: int = 0


class Flagged(Struct, gc=False):
    """What the monitor itself found."""

    kind: str
    side: str | None = None
    seconds: float = 0.0


class State(Struct, gc=False):
    """The state of a CSP run at one moment: of ``csp.monitor``, and of ``csp.finished`` at the end."""

    uptime: float
    t: Side
    q: Side
    physical: Permit
    q_pending: Permit
    requests: External
    claims: Claims | int = 0
    role_failures: dict[str, int] = {}
    lateness: float = 0.0
    findings: tuple[Flagged, ...] = ()


class Fact(Struct, gc=False):
    """One of the `FACTS`.

    Attributes:
        stamp: When.
        pipeline: Of which pipeline.
        event: What.
        line: The ids and the cause.
        detail: All its fields; empty where ``state`` holds what counts.
        state: The state, of the CSP monitor's events; ``None`` for others and where it cannot be understood.
    """

    stamp: str
    pipeline: str
    event: str
    line: Line
    detail: Detail
    state: State | None = None


def fact_of(line: Line, detail: Detail) -> Fact:
    """Make the fact of a line."""
    fact = Fact(line.timestamp, line.pipeline, line.event, line, detail)
    if line.event in {"csp.monitor", "csp.finished"}:
        inner = detail.get("state") if line.event == "csp.finished" else detail
        fact.state = _state(inner)
        fact.detail = {} if line.event == "csp.monitor" else {"balanced": detail.get("balanced")}
    return fact


def _state(fields: object) -> State | None:
    try:
        return msgspec.convert(fields, State)
    except msgspec.ValidationError:
        return None


def claims_of(state: State) -> Claims:
    """Return who waits; the final account has only their number."""
    return state.claims if isinstance(state.claims, Claims) else Claims(state.claims)
