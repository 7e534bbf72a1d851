"""A resource bound to its stock slot."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any, Self, final

from stagewire_csp.link import FRESH, LOOSE, Link
from stagewire_csp.slots import WRITTEN_OFF, Outcome, Slots

NEVER = math.inf
"""The time to live of what does not expire. One shared object: a million envelopes do not hold a float each for it."""


class ResourceEnvelope(Link):
    """One resource together with the slot that it occupies; the slot is released exactly once (CSP-1).

    As a context manager it releases itself on leaving the block unless an inventory has taken it over::

        with await ResourceEnvelope.create_with_slot(image, inventory.t_slots, ttl=30) as envelope:
            await inventory.put_t(envelope)

    Attributes:
        payload: The resource; ``None`` once released.
        created_at: When the resource was there, on the slots' clock.
        ttl: Seconds from then until it expires; ``NEVER`` when it does not.
        slots: Where its slot comes from; ``None`` once released.
    """

    __slots__ = ("created_at", "payload", "slots", "ttl")

    payload: Any
    created_at: float
    ttl: float
    slots: Slots | None

    def __init__(self) -> None:
        raise TypeError("an envelope holds a slot from the first: await ResourceEnvelope.create_with_slot(…)")

    @staticmethod
    async def create_with_slot(payload: Any, slots: Slots, *, ttl: float | None = None) -> ResourceEnvelope:
        """Wait for a slot and bind the resource to it; slot and envelope come into being together (CSP-2).

        Suspends only while no slot is free. Cancelled meanwhile, it holds nothing and the resource is written off. The
        time to live counts from the call: a resource ages while it waits for its slot.

        Args:
            payload: The resource.
            slots: The side's slots: ``inventory.t_slots`` or ``inventory.q_slots``.
            ttl: Seconds until it expires, greater than 0; ``None``: never.
        """
        if ttl is None:
            ttl = NEVER
        elif not ttl > 0.0:
            raise ValueError(f"a ttl of {ttl!r} would expire the resource at once; it must be greater than 0, or None")
        created_at = slots.clock()
        slots.produced += 1
        if slots.free:
            slots.free -= 1
        else:
            await slots.wait_for(payload)
        envelope: ResourceEnvelope = _Envelope()
        envelope.after = FRESH
        envelope.payload = payload
        envelope.created_at = created_at
        envelope.ttl = ttl
        envelope.slots = slots
        return envelope

    @property
    def released(self) -> bool:
        """Whether its slot was given back."""
        return self.slots is None

    @property
    def expires_at(self) -> float:
        """When it expires, on the slots' clock; infinity when never."""
        return self.created_at + self.ttl

    def fresh(self, now: float) -> bool:
        """Whether it has not expired at ``now``."""
        return self.created_at + self.ttl > now

    def release(self, outcome: Outcome = WRITTEN_OFF) -> None:
        """Give the slot back and let go of the resource. Idempotent: the first outcome counts. Never suspends.

        Raises:
            RuntimeError: It lies in stock, where only the inventory may release it.
        """
        slots = self.slots
        if slots is None:
            return
        if self.after is not LOOSE and self.after is not FRESH:
            raise RuntimeError("the envelope lies in stock: the inventory owns it and will release it")
        slots.settle(self, outcome)

    def __lt__(self, other: ResourceEnvelope) -> bool:
        """Order by deadline."""
        return self.created_at + self.ttl < other.created_at + other.ttl

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.after is FRESH:
            self.release()

    def __repr__(self) -> str:
        state = "released" if self.released else "in stock" if self.linked else "held"
        return f"<ResourceEnvelope {state}, ttl {self.ttl}: {self.payload!r}>"


@final
class _Envelope(ResourceEnvelope):
    """What `ResourceEnvelope.create_with_slot` makes. An ``__init__`` that is not Python's costs nothing to call."""

    __slots__ = ()

    __init__ = object.__init__
