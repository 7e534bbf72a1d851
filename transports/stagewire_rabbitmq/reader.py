"""The consuming end of one link: deliveries into the demultiplexer, acknowledgements out, and room for what is asked
for.

Two bounds hold what is delivered and not acknowledged: the broker's prefetch counts messages, and beyond
``prefetch_bytes`` deliveries are given back and consuming pauses. Acknowledging on ``get`` under such a bound would
stop for ever once the window is full of chunks that nobody asks for. So when somebody waits and such chunks hold half
of the window, the oldest are moved to the link's *parked* queue (confirmed there, then acknowledged here: nothing
depends on this process), and a pass over that queue brings them back when they are asked for. Spilling to a KV backend
would do the same with one more thing that can fail.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagewire import (
    DEAD_MAILBOX,
    DEAD_REASON,
    ChunkKey,
    ChunkMessage,
    CodecError,
    Message,
    Permanent,
    TransportError,
    bounded,
    describe,
    emit,
)
from stagewire_rabbitmq.demux import Demux
from stagewire_rabbitmq.frames import open_frame
from stagewire_rabbitmq.grants import pack_grants
from stagewire_rabbitmq.lanes import Lane, Ticket
from stagewire_rabbitmq.letters import pack_letter
from stagewire_rabbitmq.parked import ParkedPasses
from stagewire_rabbitmq.publisher import Publisher
from stagewire_rabbitmq.runs import Arrival, Frame, Name
from stagewire_rabbitmq.tap import Delivered, Tap
from stagewire_rabbitmq.topology import Queue
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

PATIENCE = 1.0
"""A request counts as waiting for so long after it was asked for in vain; readers ask every 10 ms."""

TICK = 0.1
PARK_AT_ONCE = 256
MAIN, PARKED = "main", "parked"


@dataclass(frozen=True, slots=True)
class Limits:
    """The window of one link: messages and bytes delivered and not acknowledged.

    And after how many seconds the unread expire, and a missing chunk whose successors are here is an error.
    """

    messages: int
    bytes: int
    expires: float
    gap: float


@dataclass(frozen=True, slots=True)
class LinkQueues:
    """The queues of one link, and the lanes to two of them."""

    edge: str
    main: Queue
    parked: Queue
    parked_lane: Lane
    dead_lane: Lane


class LinkReader:
    """Presents ``get(key)`` for one link. ``get`` and ``cleanup`` from any thread; the rest runs on the wire's."""

    def __init__(
        self,
        wire: Wire,
        publisher: Publisher,
        link: LinkQueues,
        limits: Limits,
        demux: Demux,
        *,
        tell: Callable[[str, bytes], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.on_arrival: Callable[..., None] | None = None
        self.on_expiry: Callable[[Sequence[Name]], None] = lambda _names: None
        self._wire = wire
        self._publisher = publisher
        self._link = link
        self._limits = limits
        self._demux = demux
        self._tell = tell
        self._log = log
        self._main = Tap(wire, link.main, limits.messages, deliver=self._on_main, lost=self._on_main_lost)
        self._parked = ParkedPasses(wire, link.parked, deliver=self._on_parked, lost=self._on_parked_lost)
        self._parking: set[Frame] = set()
        self._due: list[Frame] = []
        self._waking = False
        self._due_lock = threading.Lock()
        self._closed = False

    @property
    def refused(self) -> TransportError | None:
        """Why the broker refuses this link's queue, if it does."""
        return self._main.refused or self._parked.tap.refused

    @property
    def unread(self) -> tuple[int, int]:
        """How many messages were delivered and are not acknowledged, and their bytes."""
        return self._demux.unread

    def start(self) -> None:
        """Begin to consume."""
        self._wire.add(self._main)
        self._wire.add(self._parked.tap)
        self._wire.call(self._tick)

    def get_many(self, key: ChunkKey, limit: int) -> Sequence[ChunkMessage]:
        """Take chunks that were delivered; acknowledges each message when the last of it was taken.

        Raises:
            Permanent: Later chunks of the request have been here for long, and this one is missing (TR-3).
        """
        messages, due = self._demux.take_many(key, limit)
        if due or self._demux.owing:
            self._acknowledge_soon(due)
        if not messages and (beyond := self._demux.gap(key, self._limits.gap)) is not None:
            raise Permanent(
                f"chunk {key} of edge {self._link.edge!r} is missing: chunk {beyond} has been here for"
                f" {self._limits.gap:g} s (option gap_timeout); its sender gave it up, or it expired"
            )
        return messages

    def cleanup(self, request: str) -> None:
        """Drop what the request has here."""
        due = self._demux.cleanup(request)
        if due or self._demux.owing:
            self._acknowledge_soon(due)

    def close(self) -> None:
        """Stop consuming; what was delivered and not taken goes to the next consumer."""
        self._closed = True
        self._wire.drop(self._main)
        self._wire.drop(self._parked.tap)

    def _acknowledge_soon(self, frames: list[Frame]) -> None:
        with self._due_lock:
            wake, self._waking = not self._waking, True
            self._due += frames
        if wake:
            self._wire.call(self._acknowledge)

    def _acknowledge(self) -> None:
        with self._due_lock:
            self._waking = False
            due, self._due = self._due, []
        self._tell_senders()
        for frame in due:
            self._tap(frame).ack(frame.tag, frame.epoch)
        self._main.flush()
        self._parked.tap.flush()
        self._resume()

    def _tell_senders(self) -> None:
        """Send the grants that are due. They are not waited for: a lost one is made good by the next, or by a mark."""
        grants = self._demux.grants()
        if grants:
            for to, body in pack_grants(self._link.main.name, grants).items():
                self._tell(to, body)

    def _tap(self, frame: Frame) -> Tap:
        return self._main if frame.source == MAIN else self._parked.tap

    def _resume(self) -> None:
        _messages, size = self._demux.unread
        if not self._main.flowing and size < self._limits.bytes // 2:
            self._main.resume()

    def _on_main(self, delivered: Delivered) -> None:
        messages, size = self._demux.unread
        if not self._main.flowing or (messages and size + len(delivered.body) > self._limits.bytes):
            self._main.give_back(delivered.tag, delivered.epoch)
            self._main.pause()
            return
        self._accept(MAIN, delivered)

    def _on_parked(self, delivered: Delivered) -> None:
        self._accept(PARKED, delivered)
        self._parked.count_one()

    def _on_main_lost(self, epoch: int) -> None:
        self._demux.lose(MAIN, epoch)

    def _on_parked_lost(self, epoch: int) -> None:
        self._demux.lose(PARKED, epoch)
        self._parked.interrupt()

    def _accept(self, source: str, delivered: Delivered) -> None:
        frame = Frame(source, delivered.tag, delivered.epoch, delivered.body, delivered.reply_to)
        try:
            arrivals, faults = open_frame(frame.body)
        except CodecError as error:
            arrivals, faults = [], [str(error)]
        certain = self._parked.settled and not delivered.redelivered
        due = self._demux.accept(frame, arrivals, redelivered=delivered.redelivered, certain=certain)
        if faults:
            self._bury(frame, faults, then=lambda: self._acknowledge_soon(due))
        elif due or self._demux.owing:
            self._acknowledge_soon(due)
        if self.on_arrival is not None and arrivals:
            self._wake(arrivals)

    def _wake(self, arrivals: Sequence[Arrival]) -> None:
        assert self.on_arrival is not None
        try:
            self.on_arrival(*{arrival.name[1] for arrival in arrivals})
        except Exception as error:  # noqa: BLE001 — a reader's fault must not end the wire's thread
            emit(self._log, "transport.wakeup_failed", edge=self._link.edge, cause=describe(error))

    def _bury(self, frame: Frame, faults: Sequence[str], then: Callable[[], None]) -> None:
        """Keep an undecodable message in the edge's dead-letter mailbox, and only then let go of it (TR-6)."""
        self._demux.counters.dead += 1
        reason = bounded("; ".join(faults), 500)
        emit(self._log, "transport.dead_letter", edge=self._link.edge, mailbox=self._link.edge, cause=reason)
        letter = Message(frame.body, {DEAD_REASON: reason, DEAD_MAILBOX: self._link.edge})
        self._publisher.submit(self._link.dead_lane, [pack_letter(letter, time.time())], then=then)

    def _tick(self) -> None:
        if self._closed:
            return
        names, due = self._demux.expire(self._limits.expires)
        if due or self._demux.owing:
            self._acknowledge_soon(due)
        if names:
            self.on_expiry(names)
        self._park_idle()
        if self._demux.wants_parked():
            self._parked.begin(self._demux.unpark)
        self._resume()
        self._wire.later(TICK, self._tick)

    def _park_idle(self) -> None:
        messages, size = self._demux.unread
        if messages < self._limits.messages // 2 and size < self._limits.bytes // 2:
            return
        for frame in itertools.islice(self._demux.idle_frames(PATIENCE), PARK_AT_ONCE):
            if frame not in self._parking:
                self._park(frame)

    def _park(self, frame: Frame) -> None:
        self._parking.add(frame)
        ticket: Ticket

        def parked() -> None:
            self._wire.call(lambda: self._parked_away(frame, ticket))

        ticket = self._publisher.submit(self._link.parked_lane, [frame.body], reply_to=frame.reply_to, then=parked)

    def _parked_away(self, frame: Frame, ticket: Ticket) -> None:
        self._parking.discard(frame)
        if ticket.results[0] is None and self._demux.park(frame):
            self._acknowledge_soon([frame])
