"""The RabbitMQ transport: two connections, one to publish and one to consume, and the faces over them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stagewire import BatchTransport, ChunkLink, ChunkTransport, Clock, Closed, Traffic, emit
from stagewire_rabbitmq.batches import RabbitMQBatches
from stagewire_rabbitmq.broker import try_out
from stagewire_rabbitmq.chunks import wait_until_flushed
from stagewire_rabbitmq.connection import connection_parameters
from stagewire_rabbitmq.feedback import Feedback
from stagewire_rabbitmq.links import Links
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.publisher import Publisher
from stagewire_rabbitmq.topology import all_queues
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class RabbitMQTransport:
    """A `Transport` over one RabbitMQ virtual host.

    An alarm of the broker blocks publishing connections only, so acknowledgements and deliveries go over one of their
    own.

    Args:
        options: See `RabbitMQOptions`.
        clock: Monotonic seconds.
        log: Where events go.
    """

    def __init__(self, options: RabbitMQOptions, *, clock: Clock, log: FilteringBoundLogger) -> None:
        self._options = options
        self._log = log
        parameters = connection_parameters(options)
        self._publishing = Wire("publish", parameters, clock, log)
        self._consuming = Wire("consume", parameters, clock, log)
        self._publisher = Publisher(self._publishing)
        self._feedback = Feedback(options, self._consuming, self._publisher, log)
        wires = (self._publishing, self._consuming)
        self._batches = RabbitMQBatches(options, wires, self._publisher, self._feedback, log=log)
        self._links = Links(options, wires, self._publisher, self._feedback, clock=clock, log=log)
        self._closed = False

    async def open(self) -> None:
        """Connect. Raises `TransportError` with the cause and the remedy."""
        if self._closed:
            raise Closed("the transport was closed; make a new one")
        self._batches.open()
        for wire in (self._publishing, self._consuming):
            wire.start()
            fault = await asyncio.to_thread(wire.wait, self._options.connect_timeout + 1)
            if fault is not None:
                await self.close()
                raise fault

    async def probe(self, traffic: Traffic) -> str:
        """Visit the broker beside this transport and find what would fail later; see `stagewire.Probing`."""
        return await asyncio.to_thread(try_out, self._options, all_queues(self._options, traffic), self._log)

    def chunks(self, link: ChunkLink) -> ChunkTransport:
        """Return the face of a link; equal links, whatever their role, are one. Declares the link's queues."""
        if self._closed:
            raise Closed("the transport was closed")
        return self._links.face(link)

    def batches(self) -> BatchTransport:
        """Return the mailboxes."""
        return self._batches

    async def close(self) -> None:
        """Flush within ``close_timeout``, report what could not be, and disconnect (TR-11). Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self._batches.close()
        self._links.close()
        self._feedback.close()
        await asyncio.to_thread(self._disconnect)

    def stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return the counters per edge and mailbox; reconnects and blocked time are the connections'."""
        wires = (self._publishing, self._consuming)
        shared = {
            "reconnects": float(sum(wire.reconnects for wire in wires)),
            "blocked_seconds": sum(wire.blocked_seconds for wire in wires),
        }
        counted = {**self._links.stats(), **self._batches.stats()}
        return {
            name: {**counters, **{each: counters[each] + value for each, value in shared.items()}}
            for name, counters in counted.items()
        }

    def _disconnect(self) -> None:
        left = wait_until_flushed(self._publisher, self._options.close_timeout)
        if left:
            emit(self._log, "transport.unconfirmed", parcels=left)
        for wire in (self._publishing, self._consuming):
            wire.close(self._options.close_timeout)
