"""The order in which waiting items are put.

One FIFO over all requests (CH-3), made of a queue per request, its *lane*, and of a heap of the lanes by the number of
their first item. A lane that has to wait (CH-15) is parked: it leaves the heap, whatever waits in it, and others go on.
The items of one request therefore never overtake each other, whatever fails. Nothing here is thread-safe: the outbox's
lock is held around every call.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Collection

from stagewire_chunks.lanes import CANCEL, CHUNK, NOT_READY, Item, Lane, Use


class Backlog:
    """Lanes, their turns, parking times, and the sums that the bounds are about."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.chunks = 0
        self.bytes = 0
        self._ready: list[tuple[int, Lane]] = []
        self._timers: list[tuple[float, int, Lane]] = []
        self._numbers = itertools.count()

    @property
    def ready(self) -> bool:
        """Whether some lane may have its turn now."""
        return bool(self._ready)

    def lane(self, request: str) -> Lane:
        """Return the request's lane, made on first use."""
        return self.lanes.get(request) or self.lanes.setdefault(request, Lane(request))

    def add(self, item: Item) -> bool:
        """Append to the item's lane; returns whether a lane that had nothing to do is ready now."""
        lane, size = item.use.lane, item.size
        item.number = next(self._numbers)
        lane.items.append(item)
        lane.chunks += 1
        lane.bytes += size
        self.chunks += 1
        self.bytes += size
        if lane.turn != NOT_READY or lane.parked:
            return False
        self._make_ready(lane)
        return True

    def empty(self, item: Item) -> None:
        """Let go of an item's payload while it waits or is in hand."""
        item.use.lane.bytes -= item.size
        self.bytes -= item.size
        item.payload, item.size = None, 0

    def take(self, now: float, limit: int) -> list[Item]:
        """Take out the items whose turn it is, at most ``limit``; they still count until `done`."""
        self._unpark_due(now)
        taken: list[Item] = []
        ready = self._ready
        while ready and len(taken) < limit:
            turn, lane = ready[0]
            if turn != lane.turn or not lane.items:
                heapq.heappop(ready)  # it was parked, given back to or emptied meanwhile
                lane.turn = NOT_READY if turn == lane.turn else lane.turn
            elif lane.items[0].kind is CANCEL and lane.items[0].use.linger > now:
                self.park(lane, lane.items[0].use.linger)
            else:
                self._take_row(lane, taken, limit)
        return taken

    def give_back(self, items: Collection[Item]) -> None:
        """Put items that were taken back at the head of their lanes, in the order given."""
        for item in reversed(list(items)):
            item.use.lane.items.appendleft(item)
        for lane in {item.use.lane for item in items}:
            if not lane.parked:
                self._make_ready(lane)

    def done(self, items: Collection[Item]) -> None:
        """Account for items that were taken and need no further attempt."""
        total = 0
        for item in items:
            lane, size = item.use.lane, item.size
            lane.chunks -= 1
            lane.bytes -= size
            total += size
        self.bytes -= total
        self.chunks -= len(items)

    def park(self, lane: Lane, due: float) -> None:
        """Let a lane wait until ``due``."""
        lane.parked, lane.due, lane.turn = True, due, NOT_READY
        heapq.heappush(self._timers, (due, next(self._numbers), lane))

    def unpark(self, lane: Lane) -> None:
        """Let a lane go on now."""
        lane.parked = False
        if lane.items:
            self._make_ready(lane)

    def next_due(self) -> float | None:
        """Return when the next parked lane is due."""
        return self._timers[0][0] if self._timers else None

    def drop(self, items: Collection[Item], lane: Lane) -> None:
        """Drop waiting items of one lane."""
        if items:
            gone = set(items)
            lane.items = deque(item for item in lane.items if item not in gone)
            self.done(items)

    def retire(self, lane: Lane) -> None:
        """Forget a lane in which nothing is left (CH-7, CH-14)."""
        if lane.use is None and not lane.chunks and self.lanes.get(lane.request) is lane:
            del self.lanes[lane.request]

    def clear(self) -> None:
        """Forget everything."""
        self.lanes.clear()
        self._ready.clear()
        self._timers.clear()
        self.chunks = self.bytes = 0

    def _make_ready(self, lane: Lane) -> None:
        """Give the lane its turn, or an earlier one; one that is earlier than it need be (after a drop) it keeps."""
        number = lane.items[0].number
        if lane.turn == NOT_READY or number < lane.turn:
            lane.turn = number
            heapq.heappush(self._ready, (number, lane))

    def _take_row(self, lane: Lane, taken: list[Item], limit: int) -> None:
        """Take the first item of the lane that is first, and those saved right after it; then it takes its place."""
        items, item = lane.items, lane.items.popleft()
        taken.append(item)
        number = item.number
        while items:
            item = items[0]
            number += 1
            if item.number != number or len(taken) >= limit or item.kind is CANCEL:
                lane.turn = item.number
                heapq.heapreplace(self._ready, (item.number, lane))
                return
            taken.append(items.popleft())
        lane.turn = NOT_READY
        heapq.heappop(self._ready)

    def _unpark_due(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            due, _, lane = heapq.heappop(self._timers)
            if lane.parked and lane.due == due:
                self.unpark(lane)


def waiting_chunks(use: Use) -> list[Item]:
    """Return the items of a use that a cancel drops: its chunks."""
    return [item for item in use.lane.items if item.use is use and item.kind is CHUNK]
