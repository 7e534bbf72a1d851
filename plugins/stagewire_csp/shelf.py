"""The stock of one side: FIFO, with expiry.

With one time to live for all, the order of the stock is the order of deadlines, and looking at the head finds what has
expired. So only a straggler goes into the heap of `Deadlines`: an envelope that expires before one that came earlier,
or one that was given back. Whatever is not in there has nothing ahead of it that expires later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from stagewire_csp.deadlines import Deadlines
from stagewire_csp.envelope import ResourceEnvelope
from stagewire_csp.link import LOOSE, Link
from stagewire_csp.slots import EXPIRED, Slots


class Shelf:
    """The envelopes of one side, in the order in which they came. Synchronous throughout; only `Pairing` changes it.

    They are linked to each other in a ring, so that one which expires steps out of the middle in O(1) and leaves no
    tombstone.

    Args:
        slots: The side's slots.
    """

    __slots__ = ("_end", "_returned", "_stragglers", "due", "latest", "opposite", "size", "slots")

    opposite: Shelf

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.size = 0
        """The depth: how many lie here, those included whose expiry was not noticed yet."""
        self.due = math.inf
        """Nothing expires before this time."""
        self._end: Any = Link()  # its neighbours are the tail and the head
        self._end.after = self._end.before = self._end
        self.latest = -math.inf
        """The latest deadline of what came and is no straggler."""
        self._stragglers = Deadlines()
        self._returned: ResourceEnvelope | None = None

    def __iter__(self) -> Iterator[ResourceEnvelope]:
        """Yield the envelopes from the head. The shelf must not change meanwhile."""
        link: Any = self._end.after
        while link is not self._end:
            yield link
            link = link.after

    @property
    def first(self) -> ResourceEnvelope | None:
        """The envelope at the head."""
        return self._end.after if self.size else None

    def add(self, envelope: ResourceEnvelope, *, anew: bool = False) -> None:
        """Take over an envelope.

        Args:
            envelope: The envelope.
            anew: Let the order of deadlines begin anew if nothing lies here, for nothing may be given back either.
        """
        end = self._end  # linked in place: this is done once per resource, and a call would cost a tenth of it
        before = envelope.before = end.before
        envelope.after = end
        before.after = end.before = envelope
        deadline = envelope.created_at + envelope.ttl
        if deadline < self.due:  # noqa: PLR1730 — min() would cost as much as the rest of this function
            self.due = deadline
        if deadline >= self.latest or (anew and not self.size):
            self.latest = deadline
            self.size += 1
        else:
            self.size += 1
            self._stragglers.add(envelope, self.size)

    def give_back(self, envelope: ResourceEnvelope) -> None:
        """Take back an envelope that was taken in vain: to the head, behind those given back just before it."""
        returned = self._returned
        self._link(envelope, returned if returned is not None and returned.linked else self._end)
        self._returned = envelope
        self.due = min(self.due, envelope.expires_at)
        self._stragglers.add_again(envelope, self.size)

    def pop(self) -> ResourceEnvelope:
        """Take the envelope at the head, which must exist."""
        end = self._end
        envelope: ResourceEnvelope = end.after
        after = end.after = envelope.after
        after.before = end
        envelope.after = LOOSE  # what is before it is the end, which may stay
        self.size -= 1
        return envelope

    def has_fresh_head(self, now: float) -> bool:
        """Whether the head can be paired at ``now``."""
        first = self.first
        return first is not None and first.fresh(now)

    def drop_expired(self, now: float, limit: int) -> bool:
        """Drop what has expired, at most ``limit`` entries; returns whether there may be more (CSP-7)."""
        for _ in range(limit):
            envelope = self._expired_head(now) or self._stragglers.pop_due(now)
            if envelope is None:
                self.due = self._next_deadline()
                return False
            if envelope.linked:
                self._unlink(envelope)
                envelope.release(EXPIRED)
        return True

    def write_off(self, limit: int) -> bool:
        """Write off from the head, at most ``limit`` envelopes; returns whether more are left."""
        for _ in range(min(limit, self.size)):
            self.pop().release()
        return self.size > 0

    def all_expired(self, now: float, limit: int) -> bool:
        """Whether something lies here and none of the first ``limit`` envelopes is fresh. Read-only."""
        return self.size > 0 and not any(envelope.fresh(now) for envelope in islice(self, limit))

    def _expired_head(self, now: float) -> ResourceEnvelope | None:
        first = self.first
        return None if first is None or first.fresh(now) else first

    def _next_deadline(self) -> float:
        first = self.first
        due = self._stragglers.due
        return due if first is None else min(due, first.expires_at)

    def _link(self, envelope: ResourceEnvelope, before: Link) -> None:
        after = before.after
        envelope.before = before
        envelope.after = after
        before.after = after.before = envelope
        self.size += 1

    def _unlink(self, envelope: ResourceEnvelope) -> None:
        before = envelope.before
        after = envelope.after
        before.after = after
        after.before = before
        envelope.after = envelope.before = LOOSE
        self.size -= 1
