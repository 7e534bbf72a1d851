"""Publishing with confirms, in order, pipelined, and again after a reconnect (TR-1, TR-5, TR-7, TR-9).

Callers hand parcels to a lane, one lane a queue; what waits in a lane when the wire's thread comes by travels together
in one message, so an idle lane adds no delay and a busy one sends few messages. A parcel is its caller's until the
broker has confirmed it: after a lost connection the unconfirmed ones are sent again under the same identity, and the
consumer drops repeats.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pika
from pika import spec
from pika.channel import Channel

from stagewire import Permanent, Retryable, TransportError, TransportFull
from stagewire_rabbitmq.lanes import Lane, Parcel, Ticket
from stagewire_rabbitmq.wire import Wire

YOUNG_PAUSE = 0.05
"""Seconds, times the number of refusals, before a young quorum queue is tried again."""

IN_FLIGHT = 8
"""Unconfirmed messages per lane: enough to hide the round trip, few enough that waiting chunks gather (TR-9)."""


@dataclass(slots=True, eq=False)
class _Packet:
    lane: Lane
    parcels: list[Parcel]
    returned: bool = False

    @property
    def target(self) -> str:
        queue = self.lane.queue
        return self.parcels[0].to or "" if queue is None else queue.name


class Publisher:
    """A session that publishes. ``submit`` may be called from any thread; the rest runs on the wire's thread."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._lock = threading.Lock()
        self._lanes: list[Lane] = []
        self._scheduled = False
        self._declaring: Lane | None = None
        self._channel: Channel | None = None
        self._tag = 0
        self._numbers = itertools.count()
        self._unconfirmed: OrderedDict[int, _Packet] = OrderedDict()
        self._returned_once: set[Parcel] = set()
        wire.add(self)

    def open_lane(self, lane: Lane) -> Lane:
        """Declare the lane's queue, now and after each reconnect. From any thread."""
        with self._lock:
            self._lanes.append(lane)
        self._wire.call(self._declare_next)
        return lane

    def submit(
        self,
        lane: Lane,
        contents: Sequence[bytes],
        *,
        headers: dict[str, Any] | None = None,
        to: str | None = None,
        reply_to: str | None = None,
        then: Callable[[], None] | None = None,
    ) -> Ticket:
        """Hand parcels over; returns the ticket to wait on. ``then`` is called when all are settled, on any thread.

        Parcels with headers or replies of their own belong on a lane whose ``most`` is 1.
        """
        ticket = Ticket(len(contents), then)
        if lane.refused is not None:
            for index in range(len(contents)):
                ticket.settle(index, lane.refused)
            return ticket
        parcels = [Parcel(content, ticket, index, headers, to, reply_to) for index, content in enumerate(contents)]
        with self._lock:
            for parcel in parcels:
                parcel.number = next(self._numbers)
            lane.waiting.extend(parcels)
            lane.counters.outstanding += len(parcels)
            wake, self._scheduled = not self._scheduled, True
        if wake:
            self._wire.call(self._drain)
        return ticket

    def abandon(self, lane: Lane, ticket: Ticket) -> None:
        """Stop trying for what is not confirmed of a ticket; it may arrive all the same."""
        ticket.abandoned = True
        with self._lock:
            kept = deque(parcel for parcel in lane.waiting if parcel.ticket is not ticket)
            lane.counters.outstanding -= len(lane.waiting) - len(kept)
            lane.waiting = kept

    def count(self, lane: Lane, done: Callable[[int], None]) -> None:
        """Ask how many messages are ready in a lane's queue; ``done`` may never be called. From any thread."""
        queue = lane.queue
        assert queue is not None

        def ask() -> None:
            channel = self._channel
            if channel is not None and channel.is_open:
                channel.queue_declare(
                    queue.name,
                    durable=True,
                    arguments=queue.arguments,
                    callback=lambda frame: done(frame.method.message_count),
                )

        self._wire.call(ask)

    @property
    def outstanding(self) -> int:
        """How many parcels are not confirmed."""
        with self._lock:
            return sum(lane.counters.outstanding for lane in self._lanes)

    def up(self, channel: Channel) -> None:
        self._channel = channel
        self._tag = 0
        channel.confirm_delivery(self._on_confirm)
        channel.add_on_return_callback(self._on_return)
        self._declare_next()
        self._drain()

    def down(self, fault: TransportError) -> None:
        self._channel = None
        lost, self._unconfirmed = self._unconfirmed, OrderedDict()
        with self._lock:
            for lane in self._lanes:
                lane.declared, lane.in_flight = False, 0
            for packet in reversed(lost.values()):
                packet.lane.waiting.extendleft(reversed([p for p in packet.parcels if self._is_wanted(packet.lane, p)]))
        if isinstance(fault, Permanent) and self._wire.fault is None:
            self._refuse_undeclared(fault)
        self._declaring = None

    def _is_wanted(self, lane: Lane, parcel: Parcel) -> bool:
        if parcel.settled or not parcel.ticket.abandoned:
            return not parcel.settled
        lane.counters.outstanding -= 1
        return False

    def _refuse_undeclared(self, fault: TransportError) -> None:
        """The broker closed the channel over a declaration: the first one that it has not confirmed."""
        lane = self._declaring
        if lane is not None and not lane.declared:
            self._refuse(lane, fault)

    def _refuse(self, lane: Lane, fault: TransportError) -> None:
        with self._lock:
            lane.refused = fault
            failed, lane.waiting = lane.waiting, deque()
            lane.counters.outstanding -= len(failed)
        for parcel in failed:
            parcel.settle(fault)

    def _declare_next(self) -> None:
        """Declare the queues one after the other, so that a refusal is known to be that one's."""
        channel = self._channel
        if channel is None or not channel.is_open or self._declaring is not None:
            return
        lane = next((lane for lane in self._lanes if not lane.ready and lane.refused is None), None)
        if lane is None or lane.queue is None:
            return
        self._declaring = lane

        def declared(_frame: Any) -> None:
            self._declaring, lane.declared = None, True
            self._drain()
            self._declare_next()

        channel.queue_declare(lane.queue.name, durable=True, arguments=lane.queue.arguments, callback=declared)

    def _drain(self) -> None:
        channel = self._channel
        with self._lock:
            self._scheduled = False
            if channel is None or not channel.is_open:
                return
            packets = [packet for lane in self._lanes if lane.ready for packet in self._pack(lane)]
        for packet in packets:
            self._publish(channel, packet)

    def _pack(self, lane: Lane) -> list[_Packet]:
        packets: list[_Packet] = []
        while lane.waiting and lane.in_flight < IN_FLIGHT:
            parcels = [lane.waiting.popleft()]
            size = len(parcels[0].content)
            while lane.waiting and len(parcels) < lane.most and size + len(lane.waiting[0].content) <= lane.most_bytes:
                parcels.append(lane.waiting.popleft())
                size += len(parcels[-1].content)
            lane.in_flight += 1
            packets.append(_Packet(lane, parcels))
        return packets

    def _publish(self, channel: Channel, packet: _Packet) -> None:
        self._tag += 1
        self._unconfirmed[self._tag] = packet
        packet.lane.counters.messages += 1
        first = packet.parcels[0]
        properties = pika.BasicProperties(
            delivery_mode=2, headers=first.headers, message_id=str(self._tag), reply_to=first.reply_to
        )
        body = packet.lane.join([parcel.content for parcel in packet.parcels])
        channel.basic_publish("", packet.target, body, properties, mandatory=True)

    def _on_return(self, _channel: Channel, _method: Any, properties: pika.BasicProperties, _body: bytes) -> None:
        packet = self._unconfirmed.get(int(properties.message_id or 0))
        if packet is not None:
            packet.returned = True

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        for packet in self._confirmed(method.delivery_tag, multiple=method.multiple):
            packet.lane.in_flight -= 1
            if packet.returned:
                self._retry_returned(packet)
            elif isinstance(method, spec.Basic.Ack):
                packet.lane.proven = True
                self._settle(packet, None)
            elif packet.lane.may_be_young:
                self._retry_young(packet)
            else:
                self._settle(packet, _full(packet.target))
        self._drain()

    def _retry_young(self, packet: _Packet) -> None:
        """A quorum queue refuses at first, until it has found its leader: that is not back-pressure."""
        lane = packet.lane
        lane.refusals += 1
        self._put_back(packet)
        lane.declared = False

        def again() -> None:
            lane.declared = True
            self._drain()

        self._wire.later(YOUNG_PAUSE * lane.refusals, again)

    def _confirmed(self, tag: int, *, multiple: bool) -> list[_Packet]:
        if not multiple:
            packet = self._unconfirmed.pop(tag, None)
            return [] if packet is None else [packet]
        packets = []
        while self._unconfirmed and next(iter(self._unconfirmed)) <= tag:
            packets.append(self._unconfirmed.popitem(last=False)[1])
        return packets

    def _retry_returned(self, packet: _Packet) -> None:
        """The queue is gone (it expired, or somebody deleted it): declare it again and resend, once."""
        if packet.lane.queue is None or not self._returned_once.isdisjoint(packet.parcels):
            self._settle(
                packet, Permanent(f"no queue {packet.target!r} took the message: it does not exist (any more)")
            )
            return
        self._put_back(packet)
        packet.lane.declared = False
        self._returned_once.update(packet.parcels)
        self._declare_next()

    def _put_back(self, packet: _Packet) -> None:
        kept = [parcel for parcel in packet.parcels if self._is_wanted(packet.lane, parcel)]
        with self._lock:
            waiting = [*kept, *packet.lane.waiting]
            packet.lane.waiting = deque(sorted(waiting, key=lambda parcel: parcel.number))

    def _settle(self, packet: _Packet, result: Exception | None) -> None:
        counters = packet.lane.counters
        self._returned_once.difference_update(packet.parcels)
        with self._lock:
            counters.outstanding -= len(packet.parcels)
        for parcel in packet.parcels:
            parcel.settle(result)


def _full(queue: str) -> TransportFull:
    return TransportFull(
        f"queue {queue!r} is at its limit (option queue_bytes): put it again when the reader has caught up"
    )


def unconfirmed(wire: Wire, timeout: float) -> Retryable:
    """Return the error of a put that was not confirmed in time, with what is known of the cause."""
    if wire.blocked:
        cause = f"the broker has stopped publishers (memory or disk alarm) for {wire.blocked_seconds:.1f} s"
    elif wire.fault is not None:
        cause = str(wire.fault)
    else:
        cause = "the broker does not answer"
    return Retryable(
        f"not confirmed within {timeout:g} s: {cause}; it may have arrived, put it again under the same key"
    )
