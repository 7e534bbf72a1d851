"""Deadlines that do not follow the order of the stock: a heap with tombstones that is tidied a little on every call.

An envelope that leaves the stock leaves its entry behind; it is skipped when it comes up. When tombstones are the
majority the entries move to a new heap, a few per call and from the old one's end, so that no call ever does O(n) work.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

from stagewire_csp.envelope import ResourceEnvelope

TIDY_STEPS = 4
"""How many old entries one call moves. More than one, so that tidying outruns what is added meanwhile."""

SLACK = 64
"""How many tombstones are not worth tidying."""


class Deadlines:
    """Envelopes by deadline. Adding is O(log n), and so is each entry that comes up."""

    __slots__ = ("_again", "_heap", "_old")

    def __init__(self) -> None:
        self._again: set[ResourceEnvelope] = set()
        self._heap: list[ResourceEnvelope] = []
        self._old: list[ResourceEnvelope] = []

    def __len__(self) -> int:
        """How many entries there are, tombstones included."""
        return len(self._heap) + len(self._old)

    @property
    def due(self) -> float:
        """No envelope in here expires before this time."""
        heap = self._front()
        return heap[0].expires_at if heap else math.inf

    def add(self, envelope: ResourceEnvelope, stock: int) -> None:
        """Note an envelope in a stock of ``stock`` envelopes: when there are far more entries, most are tombstones."""
        heappush(self._heap, envelope)
        if self._old:
            self._move_some()
        elif len(self._heap) > 2 * stock + SLACK:
            self._old, self._heap = self._heap, []

    def add_again(self, envelope: ResourceEnvelope, stock: int) -> None:
        """Note an envelope that came back; however often it does, it has one entry for that."""
        if envelope not in self._again:
            self._again.add(envelope)
            self.add(envelope, stock)

    def pop_due(self, now: float) -> ResourceEnvelope | None:
        """Remove and return the first envelope if it has expired or has left the stock."""
        heap = self._front()
        if not heap or (heap[0].linked and heap[0].fresh(now)):
            return None
        envelope = heappop(heap)
        self._again.discard(envelope)
        return envelope

    def _front(self) -> list[ResourceEnvelope]:
        if not self._old:
            return self._heap
        if self._heap and self._heap[0] < self._old[0]:
            return self._heap
        return self._old

    def _move_some(self) -> None:
        for _ in range(min(TIDY_STEPS, len(self._old))):
            envelope = self._old.pop()
            if envelope.linked:
                heappush(self._heap, envelope)
            else:
                self._again.discard(envelope)
