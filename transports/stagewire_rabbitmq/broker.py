"""A short visit to the broker, beside any transport: to try it out, to see which queues there are, to delete some.

Every step has a channel of its own, since the broker closes it to say no, and a deadline.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pika.channel import Channel
from pika.exceptions import ChannelClosedByBroker

from stagewire import Retryable, TransportError
from stagewire_rabbitmq.connection import connection_parameters
from stagewire_rabbitmq.faults import where
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.topology import Queue
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

NOT_FOUND = 404
PARTING = 1.0
"""Seconds that the broker has to answer the end of a visit; with an alarm it does not."""

Answered = Callable[[Any], None]
Work = Callable[[Channel, Answered], None]
"""Does something on a channel and calls back with the broker's answer."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A queue that is there: how many messages wait in it, and how many consumers it has."""

    queue: Queue
    messages: int
    consumers: int


class _Step:
    """One thing done on a channel of its own; everything but waiting for it runs on the wire's thread."""

    def __init__(self, work: Work) -> None:
        self.done = threading.Event()
        self.answer: Any = None
        self.fault: TransportError | None = None
        self._work = work

    def up(self, channel: Channel) -> None:
        self._work(channel, self._answered)

    def down(self, fault: TransportError) -> None:
        if not self.done.is_set():
            self.fault = fault
            self.done.set()

    def _answered(self, answer: Any) -> None:
        self.answer = answer
        self.done.set()


class Visit:
    """An open connection. Use `visit`. Every method raises `TransportError`."""

    def __init__(self, wire: Wire, options: RabbitMQOptions) -> None:
        self._wire = wire
        self._timeout = options.connect_timeout
        self._place = where(connection_parameters(options))

    def existing(self, queues: Sequence[Queue]) -> list[Existing]:
        """Return those of the queues that exist. Creates none."""
        found = (self._look(queue) for queue in queues)
        return [each for each in found if each is not None]

    def compare(self, queues: Sequence[Queue]) -> None:
        """Declare queues that exist: one that has other arguments is refused."""
        for queue in queues:
            self._do(partial(_declare, queue))

    def publish(self, name: str) -> None:
        """Send a message to a queue of this visit's own and wait for its confirm."""
        self._do(partial(_publish, name))

    def delete(self, queues: Sequence[Queue]) -> None:
        """Delete queues and what is in them."""
        for queue in queues:
            self._do(partial(_delete, queue))

    def _look(self, queue: Queue) -> Existing | None:
        try:
            method = self._do(partial(_look, queue)).method
        except TransportError as error:
            cause = error.__cause__
            if isinstance(cause, ChannelClosedByBroker) and cause.reply_code == NOT_FOUND:
                return None
            raise
        return Existing(queue, method.message_count, method.consumer_count)

    def _do(self, work: Work) -> Any:
        step = _Step(work)
        self._wire.add(step)
        answered = step.done.wait(self._timeout)
        self._wire.drop(step)
        if step.fault is not None:
            raise step.fault
        if not answered:
            raise Retryable(f"{self._place}: {'' if self._wire.blocked else 'no answer in time; '}{_STOPPED}")
        return step.answer


_STOPPED = "the broker takes no messages (memory or disk alarm?): give it memory or disk, or read what waits in it"


def _look(queue: Queue, channel: Channel, answered: Answered) -> None:
    channel.queue_declare(queue.name, passive=True, callback=answered)


def _declare(queue: Queue, channel: Channel, answered: Answered) -> None:
    channel.queue_declare(queue.name, durable=True, arguments=queue.arguments, callback=answered)


def _delete(queue: Queue, channel: Channel, answered: Answered) -> None:
    channel.queue_delete(queue.name, callback=answered)


def _publish(name: str, channel: Channel, answered: Answered) -> None:
    def confirmed(frame: Any) -> None:
        channel.queue_delete(name, callback=lambda _frame: answered(frame))

    def declared(_frame: Any) -> None:
        channel.confirm_delivery(confirmed)
        channel.basic_publish("", name, b"", mandatory=True)

    channel.queue_declare(name, exclusive=True, callback=declared)


@contextmanager
def visit(options: RabbitMQOptions, log: FilteringBoundLogger) -> Iterator[Visit]:
    """Connect for the length of a block. Raises `TransportError` with the cause and the remedy."""
    wire = Wire("visit", connection_parameters(options), time.monotonic, log)
    wire.start()
    try:
        fault = wire.wait(options.connect_timeout + 1)
        if fault is not None:
            raise fault
        yield Visit(wire, options)
    finally:
        wire.close(PARTING)


def try_out(options: RabbitMQOptions, queues: Sequence[Queue], log: FilteringBoundLogger) -> str:
    """Find what a connection alone would not: alarms, missing rights, queues with other arguments.

    Returns one line about what answered. Raises `TransportError`.
    """
    with visit(options, log) as broker:
        existing = broker.existing(queues)
        broker.compare([each.queue for each in existing])
        broker.publish(f"{options.prefix}.probe.{secrets.token_hex(8)}")
    text = f"{where(connection_parameters(options))} answers and takes messages"
    return f"{text}; {len(existing)} of {len(queues)} queues exist" if queues else text
