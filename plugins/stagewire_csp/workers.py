"""One cycle of each kind of worker, in the exact order of the design (CSP-2, CSP-3, CSP-4).

What a worker owns at an ``await`` is always held by a block that lets go of it, so a cancel may come at any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from stagewire_csp.capacity import Capacity
from stagewire_csp.envelope import ResourceEnvelope
from stagewire_csp.failures import RoleFailed
from stagewire_csp.gate import AdmissionGate, WaterMarks
from stagewire_csp.inventory import Inventory
from stagewire_csp.permits import Permits
from stagewire_csp.roles import Caller, Roles
from stagewire_csp.settings import RunSettings
from stagewire_csp.source import Source


@dataclass(slots=True)
class Requests:
    """What became of the external requests: ``sent == answered + failed + given_up`` + those in flight."""

    sent: int = 0
    answered: int = 0
    failed: int = 0
    given_up: int = 0

    @property
    def in_flight(self) -> int:
        """How many wait for their answer."""
        return self.sent - self.answered - self.failed - self.given_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What the workers of a run share, and what each of them does in one cycle."""

    inventory: Inventory
    gate: AdmissionGate
    physical: Permits
    pending: Permits
    t: Source
    q: Source
    roles: Roles
    caller: Caller
    requests: Requests
    settings: RunSettings

    @classmethod
    def build(
        cls, inventory: Inventory, roles: Roles, caller: Caller, capacity: Capacity, settings: RunSettings
    ) -> Self:
        """Put together what they share."""
        marks_t = settings.t_marks or WaterMarks.for_slots(capacity.t_slot)
        marks_q = settings.q_marks or WaterMarks.for_slots(capacity.q_slot)
        return cls(
            inventory=inventory,
            gate=AdmissionGate(inventory, t=marks_t, q=marks_q),
            physical=Permits("physical", capacity.physical),
            pending=Permits("q_pending", capacity.q_pending),
            t=Source(partial(inventory.end_side, "t")),
            q=Source(partial(inventory.end_side, "q")),
            roles=roles,
            caller=caller,
            requests=Requests(),
            settings=settings,
        )

    async def make_t(self) -> None:
        """S: gate, physical, produce, release, envelope with slot, put (CSP-2)."""
        await self.gate.t.admit()
        async with self.physical:
            self.t.begin()
            resource = await self.caller.call("produce", self.roles.producer.produce)
        slots, ttl = self.inventory.t_slots, self.settings.t_ttl
        with await ResourceEnvelope.create_with_slot(resource, slots, ttl=ttl) as envelope:
            await self.inventory.put_t(envelope)

    async def request_q(self) -> None:
        """P: gate, pending, physical, send, release, wait without physical, envelope with slot, put (CSP-3)."""
        await self.gate.q.admit()
        async with self.pending:
            async with self.physical:
                self.q.begin()
                ticket = await self.caller.call("send", self.roles.requester.send)
                self.requests.sent += 1
            resource = await self._answer(ticket)
            slots, ttl = self.inventory.q_slots, self.settings.q_ttl
            with await ResourceEnvelope.create_with_slot(resource, slots, ttl=ttl) as envelope:
                await self.inventory.put_q(envelope)

    async def consume_pair(self) -> None:
        """C: claim, physical, consume, release both (CSP-4)."""
        async with self.inventory.claim_pair() as pair, self.physical:
            await self.caller.call("consume", self.roles.consumer.consume, pair.t, pair.q)

    async def _answer(self, ticket: Any) -> Any:
        try:
            receive, seconds = self.roles.requester.receive, self.settings.reply_timeout
            resource = await self.caller.call_within(seconds, "receive", receive, ticket)
        except RoleFailed:
            self.requests.failed += 1
            raise
        except BaseException:
            self.requests.given_up += 1
            raise
        self.requests.answered += 1
        return resource
