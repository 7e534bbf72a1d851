"""The way back: consumers tell senders what is gone, over one queue a sender (TR-5).

A sender's queue is a normal one that expires soon after its process, as for replies. What is told is confirmed like
everything that is published; nobody waits for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from stagewire import CodecError, emit
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.grants import Told, open_told
from stagewire_rabbitmq.lanes import Lane, single
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.publisher import Publisher
from stagewire_rabbitmq.tap import Delivered, Tap
from stagewire_rabbitmq.topology import grant_queue
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

PREFETCH = 256


class Feedback:
    """Both directions of one process. Any thread may call any method; what is heard is passed on by the wire's."""

    def __init__(
        self, options: RabbitMQOptions, consuming: Wire, publisher: Publisher, log: FilteringBoundLogger
    ) -> None:
        self._queue = grant_queue(options, secrets.token_hex(8))
        self._consuming = consuming
        self._publisher = publisher
        self._log = log
        self._lane: Lane | None = None
        self._tap: Tap | None = None
        self._listeners: dict[str, Callable[[Told], None]] = {}

    @property
    def address(self) -> str:
        """Where this process is told; every message that it sends carries it."""
        return self._queue.name

    def listen(self, queue: str, heard: Callable[[Told], None]) -> None:
        """Pass on what consumers of a queue tell."""
        self._listeners[queue] = heard
        if self._tap is None:
            self._tap = Tap(self._consuming, self._queue, PREFETCH, deliver=self._deliver, lost=lambda _epoch: None)
            self._consuming.add(self._tap)

    def tell(self, to: str, body: bytes) -> None:
        """Tell a sender; one that is gone hears nothing."""
        if self._lane is None:
            self._lane = self._publisher.open_lane(Lane(None, single, 1, 0, Counters()))
        self._publisher.submit(self._lane, [body], to=to)

    def close(self) -> None:
        """Listen no longer. Idempotent."""
        if self._tap is not None:
            self._consuming.drop(self._tap)

    def _deliver(self, delivered: Delivered) -> None:
        assert self._tap is not None
        self._tap.ack(delivered.tag, delivered.epoch)
        self._tap.flush()
        try:
            told = open_told(delivered.body)
        except CodecError as error:
            emit(self._log, "transport.undecodable", queue=self._queue.name, cause=str(error))
            return
        heard = self._listeners.get(told.queue)
        if heard is not None:
            heard(told)
