"""One consumer of one queue: its channel, its prefetch, and which delivery tags may be acknowledged now."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pika.channel import Channel

from stagewire import Permanent, TransportError
from stagewire_rabbitmq.topology import Queue
from stagewire_rabbitmq.wire import Wire


@dataclass(frozen=True, slots=True)
class Delivered:
    """One message from the broker; ``tag`` is good for the channel of ``epoch`` only."""

    tag: int
    epoch: int
    body: bytes
    redelivered: bool
    headers: Mapping[str, Any]
    reply_to: str | None = None


Deliver = Callable[[Delivered], None]
"""Takes a delivery, on the wire's thread."""


class Tap:
    """A session that consumes. Everything runs on the wire's thread.

    ``epoch`` counts the channels: a tag is only good for the channel it came from, and acknowledging it on another one
    would close that (406), so tags of a lost channel are dropped.
    """

    def __init__(
        self,
        wire: Wire,
        queue: Queue,
        prefetch: int,
        *,
        deliver: Deliver,
        lost: Callable[[int], None],
        ready: Callable[[Tap], None] = lambda _tap: None,
        flowing: bool = True,
    ) -> None:
        self.epoch = 0
        self.refused: TransportError | None = None
        self._wire = wire
        self._queue = queue
        self._prefetch = prefetch
        self._deliver = deliver
        self._lost = lost
        self._ready = ready
        self._channel: Channel | None = None
        self._consumer: str | None = None
        self._flowing = flowing
        self._unacknowledged: OrderedDict[int, None] = OrderedDict()
        self._done: set[int] = set()

    def up(self, channel: Channel) -> None:
        self._channel = channel
        self.epoch += 1
        self._unacknowledged, self._done = OrderedDict(), set()
        channel.add_on_cancel_callback(lambda _frame: self._on_cancelled(channel))
        channel.basic_qos(prefetch_count=self._prefetch)
        self._declare(channel)

    def down(self, fault: TransportError) -> None:
        self._channel = self._consumer = None
        if self._wire.fault is None and isinstance(fault, Permanent):
            self.refused = fault
        self._lost(self.epoch)

    def pause(self) -> None:
        """Stop taking deliveries."""
        self._flowing = False
        channel, consumer = self._channel, self._consumer
        if channel is not None and channel.is_open and consumer is not None:
            self._consumer = None
            channel.basic_cancel(consumer)

    def resume(self) -> None:
        """Take deliveries again."""
        if not self._flowing:
            self._flowing = True
            self._consume()

    @property
    def flowing(self) -> bool:
        """Whether deliveries are taken."""
        return self._flowing

    def ack(self, tag: int, epoch: int) -> None:
        """Note that a delivery is done with; `flush` sends it."""
        if epoch == self.epoch and tag in self._unacknowledged:
            self._done.add(tag)

    def flush(self) -> None:
        """Acknowledge what is done with: the oldest deliveries in one go, the others one by one."""
        channel = self._channel
        if channel is None or not channel.is_open or not self._done:
            return
        last = 0
        while self._unacknowledged and (tag := next(iter(self._unacknowledged))) in self._done:
            del self._unacknowledged[tag]
            self._done.discard(tag)
            last = tag
        if last:
            channel.basic_ack(last, multiple=True)
        for tag in sorted(self._done):
            del self._unacknowledged[tag]
            channel.basic_ack(tag)
        self._done.clear()

    def give_back(self, tag: int, epoch: int) -> None:
        """Return a delivery to its queue."""
        channel = self._channel
        if epoch != self.epoch or channel is None or not channel.is_open:
            return
        if self._unacknowledged.pop(tag, self) is None:
            channel.basic_nack(tag, requeue=True)

    def count(self, done: Callable[[int], None]) -> bool:
        """Ask how many messages wait in the queue; ``done`` gets the answer. Returns whether it could be asked."""
        channel = self._channel
        if channel is None or not channel.is_open:
            return False
        channel.queue_declare(self._queue.name, passive=True, callback=lambda frame: done(frame.method.message_count))
        return True

    def _declare(self, channel: Channel) -> None:
        queue = self._queue
        channel.queue_declare(
            queue.name, durable=True, arguments=queue.arguments, callback=lambda _frame: self._declared()
        )

    def _declared(self) -> None:
        self.refused = None
        self._ready(self)
        self._consume()

    def _consume(self) -> None:
        channel = self._channel
        if channel is None or not channel.is_open or not self._flowing or self._consumer is not None:
            return
        epoch = self.epoch

        def deliver(_channel: Channel, method: Any, properties: Any, body: bytes) -> None:
            self._unacknowledged[method.delivery_tag] = None
            headers, reply_to = properties.headers or {}, properties.reply_to
            self._deliver(Delivered(method.delivery_tag, epoch, body, method.redelivered, headers, reply_to))

        self._consumer = channel.basic_consume(self._queue.name, deliver)

    def _on_cancelled(self, channel: Channel) -> None:
        """The broker ended the consumer: the queue was deleted or expired. Declare it again."""
        if channel.is_open and channel is self._channel:
            self._consumer = None
            self._declare(channel)
