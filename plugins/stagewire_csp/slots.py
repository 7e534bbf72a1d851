"""The stock slots of one side, and its ledger: what was produced, and what became of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stagewire import Clock
from stagewire_csp.permits import Permits

if TYPE_CHECKING:
    from stagewire_csp.envelope import ResourceEnvelope


class Outcome(StrEnum):
    """What became of a resource."""

    CONSUMED = "consumed"
    """Its pair was consumed to the end."""
    WRITTEN_OFF = "written_off"
    """An error, a cancel or the end of the run let go of it."""
    EXPIRED = "expired"
    """Its time to live was over before it was paired."""


CONSUMED = Outcome.CONSUMED  # an enum's attribute costs ten times as much as a global, too much once per resource
WRITTEN_OFF = Outcome.WRITTEN_OFF
EXPIRED = Outcome.EXPIRED

Settled = Callable[[Any, Outcome], None]
"""Takes a resource and what became of it, once. Called on the event loop; returns at once, leaves the stock alone."""


class Slots(Permits):
    """The slots that bound one side's stock, with the count of what was produced and what became of it (CSP-1, CSP-14).

    At every moment ``produced == consumed + written_off + expired + held + waiting``: a resource waits for its slot,
    holds it, or is settled.

    Args:
        name: The side: ``t`` or ``q``.
        cap: How many slots there are, at least 1.
        clock: Monotonic seconds; the envelopes of these slots are stamped with it.
        on_settled: Takes each resource when its fate is known.
    """

    __slots__ = ("_on_settled", "clock", "consumed", "expired", "produced", "written_off")

    def __init__(self, name: str, cap: int, clock: Clock, on_settled: Settled | None = None) -> None:
        super().__init__(name, cap)
        self.clock = clock
        self.produced = 0
        self.consumed = 0
        self.written_off = 0
        self.expired = 0
        self._on_settled = on_settled

    async def wait_for(self, resource: Any) -> None:
        """Wait for a slot for a resource that was produced; cancelled meanwhile, it is written off."""
        try:
            await self._queue.wait()
        except BaseException:
            self.written_off += 1
            self._tell(resource, WRITTEN_OFF)
            raise

    def settle(self, envelope: ResourceEnvelope, outcome: Outcome) -> None:
        """Take back the slot of an envelope that its owner lets go of, and note its fate. Never suspends.

        Raises:
            ValueError: As `release`.
        """
        resource = envelope.payload
        envelope.payload = envelope.slots = None
        if self.free == self.cap or self._queue.waiting:
            self.release()
        else:  # as `release` does; this is the usual case, twice per pair
            self.free += 1
        if outcome is CONSUMED:
            self.consumed += 1
        elif outcome is EXPIRED:
            self.expired += 1
        else:
            self.written_off += 1
        if self._on_settled is not None:
            self._tell(resource, outcome)

    def _tell(self, resource: Any, outcome: Outcome) -> None:
        try:
            if self._on_settled is not None:
                self._on_settled(resource, outcome)
        except Exception as error:  # noqa: BLE001 — an observer must not break the books
            message = f"on_settled of side {self.name!r} failed"
            asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
