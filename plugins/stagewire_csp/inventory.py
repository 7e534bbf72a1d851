"""The only door to the stock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from stagewire import Clock
from stagewire_csp.envelope import ResourceEnvelope
from stagewire_csp.lease import PairLease
from stagewire_csp.pairing import DepthWatcher, Pairing
from stagewire_csp.shelf import Shelf
from stagewire_csp.slots import Outcome, Settled, Slots

SideName = Literal["t", "q"]
"""A side: ``t``, made locally, or ``q``, which came from outside."""

SIDES: tuple[SideName, ...] = ("t", "q")
"""Both sides."""

OnSettled = Callable[[SideName, Any, Outcome], None]
"""Takes side, resource and fate of each resource, once, when it is known."""


class Inventory:
    """The stock of both sides and the atomic pairing of them (CSP-5, CSP-6, CSP-7).

    Workers have three methods: `put_t`, `put_q`, `claim_pair`. Whoever owns the inventory also says when a side has
    ended (`end_side`) and closes it (`close`). Belongs to one event loop; holds no task, no thread and no lock. Every
    operation is O(log n), also when a million resources expire at once.

    Args:
        t_slots: How many T may be in stock or in use, at least 1.
        q_slots: The same for Q.
        clock: Monotonic seconds; 0 is a time like any other.
        on_settled: Takes each resource when its fate is known. Must leave the inventory alone.
    """

    def __init__(
        self, t_slots: int, q_slots: int, *, clock: Clock = time.monotonic, on_settled: OnSettled | None = None
    ) -> None:
        self.clock = clock
        self.t_slots = Slots("t", t_slots, clock, _for_side("t", on_settled))
        """The slots of side T, for `ResourceEnvelope.create_with_slot`."""
        self.q_slots = Slots("q", q_slots, clock, _for_side("q", on_settled))
        """The slots of side Q."""
        self._t = Shelf(self.t_slots)
        self._q = Shelf(self.q_slots)
        self._pairing = Pairing(self._t, self._q, clock)

    async def put_t(self, envelope: ResourceEnvelope) -> None:
        """Take over a T. Never suspends. When this raises, the caller still owns the envelope.

        Raises:
            Closed: The inventory is closed, or the side has ended.
            ValueError: The envelope was put before, was released, or belongs to another side or inventory.
        """
        self._pairing.put(self._t, envelope)

    async def put_q(self, envelope: ResourceEnvelope) -> None:
        """Take over a Q; as `put_t`."""
        self._pairing.put(self._q, envelope)

    def claim_pair(self) -> PairLease:
        """Return the lease of one T and one Q, to be entered with ``async with``; entering waits for a pair.

        Waiting removes nothing from the stock; claims are served in the order in which they were entered. Entering
        raises `NoMorePairs` when there will be none.
        """
        lease = PairLease()
        lease.pairing = self._pairing
        return lease

    def end_side(self, side: SideName) -> None:
        """Take no more on this side: once it is used up, claims end with `NoMorePairs`. Idempotent."""
        self._pairing.end(self._shelf(side))

    async def close(self) -> None:
        """Write off what is in stock; puts raise `Closed` and claims `NoMorePairs` from the first moment. Idempotent.

        Yields to the loop between batches; cancelled there, it finishes at once. Claimed pairs stay with their leases.
        """
        self._pairing.close()
        try:
            more = self._pairing.write_off()
            while more:
                await asyncio.sleep(0)
                more = self._pairing.write_off()
        finally:
            while self._pairing.write_off():
                pass

    def watch(self, watcher: DepthWatcher) -> None:
        """Call ``watcher`` with the depths of T and Q, now and whenever they have changed."""
        self._pairing.watch(watcher)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._pairing.closed

    @property
    def depths(self) -> tuple[int, int]:
        """How many T and Q lie in stock, those included whose expiry was not noticed yet."""
        return self._t.size, self._q.size

    @property
    def reserved(self) -> int:
        """How many pairs were handed to claims that have not taken them yet."""
        return self._pairing.reserved

    @property
    def waiting(self) -> int:
        """How many claims wait."""
        return self._pairing.queue.waiting

    @property
    def waiting_since(self) -> float | None:
        """Since when the first claim has been waiting, or ``None``."""
        return self._pairing.queue.first_since

    def oldest(self, side: SideName) -> float | None:
        """When the first in stock on this side was made, or ``None``."""
        first = self._shelf(side).first
        return None if first is None else first.created_at

    def all_expired(self, side: SideName, limit: int) -> bool:
        """Whether a side has stock and none of its first ``limit`` is fresh. Read-only, O(limit)."""
        return self._shelf(side).all_expired(self.clock(), limit)

    def _shelf(self, side: SideName) -> Shelf:
        return self._t if side == "t" else self._q


def _for_side(side: SideName, on_settled: OnSettled | None) -> Settled | None:
    return None if on_settled is None else partial(on_settled, side)
