"""What follows from an attempt to put: done, again later, or the request failed (CH-15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stagewire import RequestFailed, describe
from stagewire_chunks.context import Context
from stagewire_chunks.lanes import CHUNK, ERROR, Item, Lane
from stagewire_chunks.messages import Fault, Trouble, drop_traces
from stagewire_chunks.outbox import Outbox


@dataclass(slots=True)
class SendCounts:
    """What the sending side has done."""

    puts: int = 0
    retries: int = 0
    full: int = 0
    failed: int = 0
    terminals_lost: int = 0


class Settlement:
    """Applies results to the outbox under its lock, then tells who has to know without it."""

    def __init__(
        self,
        outbox: Outbox,
        context: Context,
        on_room: Callable[[str], object] | None,
        on_failed: Callable[[], object] | None,
        on_sent: Callable[[str], object] | None = None,
    ) -> None:
        self.counts = SendCounts()
        self._outbox = outbox
        self._backlog = outbox.backlog
        self._options = context.options
        self._stage = context.stage
        self._clock = context.clock
        self._watch = context.watch
        self._keeps_runs = context.port.keeps_runs
        self._on_room = on_room
        self._on_failed = on_failed
        self._on_sent = on_sent
        self._through: list[str] = []
        self._events: list[tuple[str, dict[str, Any]]] = []

    def settle(self, tried: list[Item], troubles: dict[Item, Trouble], untouched: list[Item]) -> None:
        """Settle the items that were tried, with or without trouble, and give back those that were not."""
        box = self._outbox
        failed = self.counts.failed
        with box.courteous:
            if box.cleared:
                return
            if troubles:
                untouched = self._sort(tried, troubles) + untouched
            else:
                self._sent(tried)
            if untouched:
                self._give_back(untouched)
            freed = box.room.take_freed() if box.room else []
            box.changed()
        if freed or self._events or self._through:
            self._tell(freed, news=self.counts.failed > failed)

    def _sort(self, tried: list[Item], troubles: dict[Item, Trouble]) -> list[Item]:
        """Settle what was sent; returns what goes back. Per lane only the first trouble counts, the rest follows."""
        self._sent([item for item in tried if item not in troubles])
        again: list[Item] = []
        stuck: set[Lane] = set()
        for item, trouble in troubles.items():
            if item.use.lane in stuck or self._survives(item, trouble):
                again.append(item)
            stuck.add(item.use.lane)
        return again

    def _sent(self, items: list[Item]) -> None:
        self._backlog.done(items)
        for item in items:
            lane = item.use.lane
            if lane.tries:
                lane.tries = lane.faults = 0
            if item.kind is not CHUNK or lane.use is None:
                self._end(item)

    def _give_back(self, items: list[Item]) -> None:
        wanted = [item for item in items if item.wanted]
        if len(wanted) < len(items):
            unwanted = [item for item in items if not item.wanted]
            self._backlog.done(unwanted)
            for item in unwanted:
                self._end(item)
        self._backlog.give_back(wanted)

    def _end(self, item: Item) -> None:
        """End what ends with an item that is done: its use with a terminal, its lane with the last one."""
        lane = item.use.lane
        if item.kind is not CHUNK and self._on_sent is not None:
            self._through.append(lane.request)
        if item.kind is not CHUNK and lane.use is item.use:
            lane.use = None
        self._backlog.retire(lane)

    def _survives(self, item: Item, trouble: Trouble) -> bool:
        """Decide what the first trouble of a lane means; returns whether the item, perhaps as an ERROR, goes back."""
        lane = item.use.lane
        if not item.wanted:
            lane.tries = lane.faults = 0
        elif self._may_retry(lane, trouble):
            self.counts.retries += 1
            pause = self._options.pause(lane.tries, full=trouble.fault is Fault.FULL)
            self._backlog.park(lane, self._clock() + pause)
        elif item.kind is ERROR or item.use.ended:
            self._lose(item, trouble)
            return False
        else:
            self._fail(item, trouble)
        return True

    def _may_retry(self, lane: Lane, trouble: Trouble) -> bool:
        now = self._clock()
        lane.since = lane.since if lane.tries else now
        lane.tries += 1
        if trouble.fault is Fault.FULL:
            self.counts.full += 1
            return now - lane.since < self._options.room_timeout
        lane.faults += 1
        return trouble.fault is Fault.UNSURE and lane.faults < self._options.attempts

    def _fail(self, item: Item, trouble: Trouble) -> None:
        """End a use: what waits of it is dropped, the item becomes its ERROR terminal, the owner is told."""
        use, lane = item.use, item.use.lane
        error = self._error(item, trouble)
        use.failed = True
        self._backlog.drop([other for other in lane.items if other.use is use], lane)
        if not use.cancelled:
            self._outbox.failures.add(error, producing=not use.closed)
        if lane.use is use:
            lane.use = None
        self._backlog.empty(item)
        if not (item.may_be_whole and self._keeps_runs):
            item.message, item.unsure_at = None, None
        item.kind, item.payload = ERROR, str(error)
        lane.tries = lane.faults = 0
        self.counts.failed += 1

    def _lose(self, item: Item, trouble: Trouble) -> None:
        """Give up a terminal that cannot be put (again); the receiver's stall deadline has to end the request there."""
        lane = item.use.lane
        if not item.use.ended:
            self.counts.terminals_lost += 1
            self._note("chunk.terminal_lost", item, trouble)
        lane.tries = lane.faults = 0
        self._backlog.done([item])
        self._end(item)

    def _error(self, item: Item, trouble: Trouble) -> RequestFailed:
        lane, error = item.use.lane, trouble.error
        attempts = f" (attempt {lane.tries})" if lane.tries > 1 else ""
        cause = f"chunk {item.use.next_id}: {trouble.what}{attempts}: {describe(error)}"
        failed = RequestFailed(lane.request, self._stage, cause)
        failed.__cause__ = error
        self._note("chunk.request_failed", item, trouble)
        return failed

    def _note(self, name: str, item: Item, trouble: Trouble) -> None:
        error = trouble.error
        fields = {"what": trouble.what, "attempts": item.use.lane.tries, "cause": describe(error), "exc_info": error}
        self._events.append((name, {"request_id": item.use.lane.request, "chunk_id": item.use.next_id, **fields}))

    def _tell(self, freed: list[str], *, news: bool) -> None:
        events, self._events = self._events, []
        for name, fields in events:
            self._watch.event(name, **fields)
            drop_traces(fields["exc_info"])
        for request in freed:
            self._watch.call(self._on_room, request)
        through, self._through = self._through, []
        for request in through:
            self._watch.call(self._on_sent, request)
        if news:
            self._watch.call(self._on_failed)
