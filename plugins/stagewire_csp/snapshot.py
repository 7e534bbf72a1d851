"""The live state of a run as plain numbers, for events, metrics and terminals (CSP-16). Reading it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stagewire_csp.failures import Role
from stagewire_csp.gate import Valve
from stagewire_csp.inventory import Inventory, SideName
from stagewire_csp.permits import Permits
from stagewire_csp.workers import Workers


@dataclass(frozen=True, slots=True)
class PermitState:
    """A capacity boundary: ``cap == free + held``."""

    cap: int
    free: int
    held: int
    waiting: int

    @classmethod
    def of(cls, permits: Permits) -> PermitState:
        """Read it."""
        return cls(permits.cap, permits.free, permits.held, permits.waiting)


@dataclass(frozen=True, slots=True)
class SideState:
    """One side of the stock.

    Attributes:
        depth: How many lie in stock, those included whose expiry was not noticed yet.
        age: Seconds since the first of them was made; ``None`` when there is none.
        gate_open: Whether production may go on.
        gate_waiting: How many workers wait for that.
        slots: The slots.
        produced: How many were made.
        consumed: How many were consumed.
        written_off: How many were let go of.
        expired: How many expired.
    """

    depth: int
    age: float | None
    gate_open: bool
    gate_waiting: int
    slots: PermitState
    produced: int
    consumed: int
    written_off: int
    expired: int

    @property
    def balanced(self) -> bool:
        """Whether every resource is accounted for (CSP-14)."""
        settled = self.consumed + self.written_off + self.expired
        return self.produced == settled + self.slots.held + self.slots.waiting


@dataclass(frozen=True, slots=True)
class RequestState:
    """The external requests."""

    sent: int
    answered: int
    failed: int
    given_up: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state at one moment.

    Attributes:
        wall: Unix time, for people and for joining with other logs; it may step.
        uptime: Seconds since the start, on the monotonic clock.
        t: Side T.
        q: Side Q.
        physical: The permits of local heavy work.
        q_pending: The permits of requests in flight.
        claims: How many claims wait for a pair.
        claim_age: Seconds that the first of them has waited; ``None`` when none waits.
        reserved: How many pairs were handed to claims that have not taken them yet.
        requests: The external requests.
        failures: How often each role has failed.
    """

    wall: float
    uptime: float
    t: SideState
    q: SideState
    physical: PermitState
    q_pending: PermitState
    claims: int
    claim_age: float | None
    reserved: int
    requests: RequestState
    failures: Mapping[Role, int] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """How many pairs were consumed."""
        return self.t.consumed

    def side(self, name: SideName) -> SideState:
        """Return one side."""
        return self.t if name == "t" else self.q


def take_snapshot(workers: Workers, failures: Mapping[Role, int], *, wall: float, started: float) -> Snapshot:
    """Read the state of a run. O(1), read-only.

    Args:
        workers: What the run's workers share.
        failures: How often each role has failed.
        wall: The Unix time now.
        started: When the run began, on the inventory's clock.
    """
    inventory = workers.inventory
    now = inventory.clock()
    since = inventory.waiting_since
    requests = workers.requests
    return Snapshot(
        wall=wall,
        uptime=now - started,
        t=_side(inventory, "t", workers.gate.t, now),
        q=_side(inventory, "q", workers.gate.q, now),
        physical=PermitState.of(workers.physical),
        q_pending=PermitState.of(workers.pending),
        claims=inventory.waiting,
        claim_age=None if since is None else now - since,
        reserved=inventory.reserved,
        requests=RequestState(requests.sent, requests.answered, requests.failed, requests.given_up, requests.in_flight),
        failures=dict(failures),
    )


def _side(inventory: Inventory, name: SideName, valve: Valve, now: float) -> SideState:
    slots = inventory.t_slots if name == "t" else inventory.q_slots
    oldest = inventory.oldest(name)
    return SideState(
        depth=inventory.depths[0 if name == "t" else 1],
        age=None if oldest is None else now - oldest,
        gate_open=valve.open,
        gate_waiting=valve.waiting,
        slots=PermitState.of(slots),
        produced=slots.produced,
        consumed=slots.consumed,
        written_off=slots.written_off,
        expired=slots.expired,
    )
