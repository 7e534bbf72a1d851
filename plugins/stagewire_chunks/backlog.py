"""The order in which waiting items are put.

One FIFO of *turns* over all requests (CH-3): an item is a turn in the FIFO plus a place in its lane. A lane that has to
wait (CH-15) is parked: its turns are set aside and owed to it, and others go on. The items of one request therefore
never overtake each other, whatever fails. Nothing here is thread-safe: the outbox's lock is held around every call.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Collection, Iterable

from stagewire_chunks.lanes import Item, Kind, Lane, Use

_SPARE_TURNS = 1_024
"""Turns without an item that are not worth looking for."""


class Backlog:
    """Lanes, turns, parking times, and the sums that the bounds are about."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.chunks = 0
        self.bytes = 0
        self._turns: deque[Lane] = deque()
        self._timers: list[tuple[float, int, Lane]] = []
        self._numbers = itertools.count()

    @property
    def turns(self) -> bool:
        """Whether some lane may have its turn now."""
        return bool(self._turns)

    def lane(self, request: str) -> Lane:
        """Return the request's lane, made on first use."""
        return self.lanes.get(request) or self.lanes.setdefault(request, Lane(request))

    def add(self, item: Item) -> None:
        """Append to the item's lane, last in turn."""
        lane, size = item.use.lane, item.size
        lane.items.append(item)
        self._turns.append(lane)
        lane.chunks += 1
        lane.bytes += size
        self.chunks += 1
        self.bytes += size

    def empty(self, item: Item) -> None:
        """Let go of an item's payload while it waits or is in hand."""
        item.use.lane.bytes -= item.size
        self.bytes -= item.size
        item.payload, item.size = None, 0

    def take(self, now: float, limit: int) -> list[Item]:
        """Take out the items whose turn it is, at most ``limit``; they still count until `done`."""
        self._unpark_due(now)
        taken: list[Item] = []
        turns = self._turns
        while turns and len(taken) < limit:
            lane = turns.popleft()
            if lane.parked:
                lane.owed += 1
            elif lane.items:  # else its item was dropped
                item = lane.items[0]
                if item.kind is Kind.CANCEL and item.use.linger > now:
                    self.park(lane, item.use.linger)
                    lane.owed += 1
                else:
                    taken.append(lane.items.popleft())
        return taken

    def give_back(self, items: list[Item]) -> None:
        """Put items that were taken back at the head of their lanes, first in turn, in the order given."""
        for item in reversed(items):
            lane = item.use.lane
            lane.items.appendleft(item)
            self._turns.appendleft(lane)

    def done(self, items: Collection[Item]) -> None:
        """Account for items that were taken and need no further attempt."""
        for item in items:
            lane, size = item.use.lane, item.size
            lane.chunks -= 1
            lane.bytes -= size
            self.bytes -= size
        self.chunks -= len(items)

    def park(self, lane: Lane, due: float) -> None:
        """Let a lane wait until ``due``."""
        lane.parked, lane.due = True, due
        heapq.heappush(self._timers, (due, next(self._numbers), lane))

    def unpark(self, lane: Lane) -> None:
        """Let a lane go on now, first in turn."""
        lane.parked = False
        self._turns.extendleft([lane] * lane.owed)
        lane.owed = 0

    def next_due(self) -> float | None:
        """Return when the next parked lane is due."""
        return self._timers[0][0] if self._timers else None

    def drop(self, items: Iterable[Item], lane: Lane) -> int:
        """Drop waiting items of one lane; returns how many. Their turns lapse."""
        gone = set(items)
        if gone:
            lane.items = deque(item for item in lane.items if item not in gone)
            self.done(gone)
            self._compact()
        return len(gone)

    def retire(self, lane: Lane) -> None:
        """Forget a lane in which nothing is left (CH-7, CH-14)."""
        if lane.use is None and not lane.chunks and self.lanes.get(lane.request) is lane:
            del self.lanes[lane.request]

    def clear(self) -> None:
        """Forget everything."""
        self.lanes.clear()
        self._turns.clear()
        self._timers.clear()
        self.chunks = self.bytes = 0

    def _unpark_due(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            due, _, lane = heapq.heappop(self._timers)
            if lane.parked and lane.due == due:
                self.unpark(lane)

    def _compact(self) -> None:
        """Remove the turns that lapsed, when they are many: a caller may save and cancel for ever."""
        if len(self._turns) <= 2 * self.chunks + _SPARE_TURNS:
            return
        used: Counter[Lane] = Counter()
        kept: deque[Lane] = deque()
        for lane in self._turns:
            if used[lane] < len(lane.items) - lane.owed:
                used[lane] += 1
                kept.append(lane)
        self._turns = kept


def waiting_chunks(use: Use) -> list[Item]:
    """Return the items of a use that a cancel drops: its chunks."""
    return [item for item in use.lane.items if item.use is use and item.kind is Kind.CHUNK]
