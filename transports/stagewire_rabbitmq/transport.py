"""The RabbitMQ transport: two connections, one to publish and one to consume, and the faces over them."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pika

from stagewire import BatchTransport, ChunkLink, ChunkTransport, Clock, Closed, Permanent
from stagewire_rabbitmq.batches import RabbitMQBatches
from stagewire_rabbitmq.chunks import RabbitMQChunks, wait_until_flushed
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.demux import Demux, Name
from stagewire_rabbitmq.frames import join_entries
from stagewire_rabbitmq.lanes import Lane
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.publisher import Publisher
from stagewire_rabbitmq.reader import Limits, LinkQueues, LinkReader
from stagewire_rabbitmq.topology import chunk_queue, dead_queue, parked_queue
from stagewire_rabbitmq.wire import Wire


class RabbitMQTransport:
    """A `Transport` over one RabbitMQ virtual host.

    An alarm of the broker blocks publishing connections only, so acknowledgements and deliveries go over one of their
    own.

    Args:
        options: See `RabbitMQOptions`.
        clock: Monotonic seconds.
        report: Takes warnings: an event's name and its fields.
    """

    def __init__(self, options: RabbitMQOptions, *, clock: Clock, report: Callable[..., Any]) -> None:
        self._options = options
        self._clock = clock
        self._report = report
        parameters = connection_parameters(options)
        self._publishing = Wire("publish", parameters, clock)
        self._consuming = Wire("consume", parameters, clock)
        self._publisher = Publisher(self._publishing)
        self._batches = RabbitMQBatches(options, self._publishing, self._consuming, self._publisher)
        self._links: dict[ChunkLink, RabbitMQChunks] = {}
        self._counters: dict[str, Counters] = {}
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

    def chunks(self, link: ChunkLink) -> ChunkTransport:
        """Return the face of a link; equal links, whatever their role, are one. Declares the link's queues."""
        if self._closed:
            raise Closed("the transport was closed")
        base = ChunkLink(link.edge, link.source, link.target, link.replica)
        chunks = self._links.get(base)
        if chunks is None:
            chunks = self._links[base] = self._make(base)
        if link.role != "send" and chunks.reader is None:
            chunks.reader = self._read(base)
        return chunks

    def batches(self) -> BatchTransport:
        """Return the mailboxes."""
        return self._batches

    async def close(self) -> None:
        """Flush within ``close_timeout``, report what could not be, and disconnect (TR-11). Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self._batches.close()
        for chunks in self._links.values():
            chunks.close()
        await asyncio.to_thread(self._disconnect)

    def stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return the counters per edge and mailbox; reconnects and blocked time are the connections'."""
        wires = (self._publishing, self._consuming)
        shared = {
            "reconnects": float(sum(wire.reconnects for wire in wires)),
            "blocked_seconds": sum(wire.blocked_seconds for wire in wires),
        }
        edges = {edge: counters.snapshot() for edge, counters in list(self._counters.items())}
        return {name: {**counters, **shared} for name, counters in {**edges, **self._batches.stats()}.items()}

    def _disconnect(self) -> None:
        left = wait_until_flushed(self._publisher, self._options.close_timeout)
        if left:
            self._report("transport.unconfirmed", parcels=left)
        for wire in (self._publishing, self._consuming):
            wire.close(self._options.close_timeout)

    def _counter(self, edge: str) -> Counters:
        return self._counters.setdefault(edge, Counters())

    def _make(self, link: ChunkLink) -> RabbitMQChunks:
        options = self._options
        join: Callable[[Sequence[bytes]], bytes] = lambda entries: join_entries(entries, time.time())  # noqa: E731
        lane = Lane(
            chunk_queue(options, link), join, options.coalesce_chunks, options.coalesce_bytes, self._counter(link.edge)
        )
        return RabbitMQChunks(self._publishing, self._publisher, self._publisher.open_lane(lane), options.put_timeout)

    def _read(self, link: ChunkLink) -> LinkReader:
        options = self._options
        parked = Lane(parked_queue(options, link), _single, 1, 0, Counters())
        dead = Lane(dead_queue(options, link.edge), _single, 1, 0, Counters())
        queues = LinkQueues(
            link.edge,
            chunk_queue(options, link),
            parked_queue(options, link),
            self._publisher.open_lane(parked),
            self._publisher.open_lane(dead),
        )
        demux = Demux(self._counter(link.edge), self._clock, time.time)
        limits = Limits(options.prefetch_messages, options.prefetch_bytes, options.expires)
        reader = LinkReader(self._consuming, self._publisher, queues, limits, demux)
        reader.on_expiry = partial(self._report_expiry, link.edge)
        reader.start()
        return reader

    def _report_expiry(self, edge: str, names: Sequence[Name]) -> None:
        for _stage, request in names:
            self._report("transport.expired", edge=edge, request_id=request)


def connection_parameters(options: RabbitMQOptions) -> pika.URLParameters:
    """Return pika's parameters for the options. Raises `Permanent` for a URL or a certificate that cannot be read."""
    try:
        parameters = pika.URLParameters(options.url.get_secret_value())
    except (ValueError, TypeError) as error:
        raise Permanent(
            f"the transport's url cannot be read ({type(error).__name__}): amqp://user:password@host:port/vhost"
        ) from None
    parameters.heartbeat = options.heartbeat
    parameters.socket_timeout = options.connect_timeout
    parameters.stack_timeout = options.connect_timeout + 0.5
    parameters.connection_attempts = 1
    if options.url.get_secret_value().startswith("amqps://"):
        parameters.ssl_options = pika.SSLOptions(_tls(options), parameters.host)
    return parameters


def _tls(options: RabbitMQOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.client_certificate is not None:
            context.load_cert_chain(options.client_certificate)
    except OSError as error:
        raise Permanent(f"ca_file or client_certificate of the transport cannot be read: {error}") from error
    return context


def _single(contents: Sequence[bytes]) -> bytes:
    return contents[0]
