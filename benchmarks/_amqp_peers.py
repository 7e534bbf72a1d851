"""What people write by hand over RabbitMQ, with the guarantees that ours gives.

Each publishes a request's chunks in order, durable, mandatory and confirmed, to one durable queue, and acknowledges
each message after it was taken. Requests run at the same time where the library allows it.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
import aiormq
import kombu
import pika
from faststream.rabbit import RabbitBroker, RabbitQueue

from _amqp import Load, Meter

QUIET = {"x-expires": 600_000}


class Count:
    """Counts what arrived, and tells when that was all."""

    def __init__(self, total: int) -> None:
        self.left = total
        self.done = asyncio.Event()

    def one(self) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


async def at_once(load: Load, publish: Callable[[str, int], Awaitable[Any]]) -> None:
    """Publish all requests at the same time, each one's chunks in order."""

    async def request(name: str) -> None:
        for number in range(load.chunks):
            await publish(name, number)

    await asyncio.gather(*(request(name) for name in load.names))


@asynccontextmanager
async def robust(url: str) -> AsyncIterator[tuple[Any, Any]]:
    """Two connections, to publish and to consume."""
    async with await aio_pika.connect_robust(url) as publishing, await aio_pika.connect_robust(url) as consuming:
        yield await publishing.channel(on_return_raises=True), await consuming.channel()


def message(body: bytes, request: str, number: int) -> Any:
    return aio_pika.Message(
        body, headers={"request": request, "chunk": number}, delivery_mode=aio_pika.DeliveryMode.PERSISTENT
    )


async def by_aio_pika(url: str, load: Load, meter: Meter) -> None:
    body, count = load.body, Count(load.total)

    async def take(incoming: Any) -> None:
        await incoming.ack()
        count.one()

    async with robust(url) as (publishing, consuming):
        await consuming.set_qos(prefetch_count=load.prefetch)
        queue = await consuming.declare_queue(uuid.uuid4().hex, durable=True, arguments=QUIET)
        await queue.consume(take)
        exchange = publishing.default_exchange
        with meter:
            await at_once(load, lambda name, number: exchange.publish(message(body, name, number), queue.name))
            await count.done.wait()
        await queue.delete(if_unused=False, if_empty=False)


async def through_aio_pika(url: str, load: Load, meter: Meter) -> None:
    """Three stages: the middle one takes from one queue, puts to the next and acknowledges."""
    body, count = load.body, Count(load.total)
    async with robust(url) as (publishing, consuming):
        await consuming.set_qos(prefetch_count=load.prefetch)
        first, second = [
            await consuming.declare_queue(uuid.uuid4().hex, durable=True, arguments=QUIET) for _ in range(2)
        ]
        exchange = publishing.default_exchange

        async def forward(incoming: Any) -> None:
            headers = incoming.headers
            await exchange.publish(message(incoming.body, headers["request"], headers["chunk"]), second.name)
            await incoming.ack()

        async def take(incoming: Any) -> None:
            await incoming.ack()
            count.one()

        await first.consume(forward)
        await second.consume(take)
        with meter:
            await at_once(load, lambda name, number: exchange.publish(message(body, name, number), first.name))
            await count.done.wait()
        for queue in (first, second):
            await queue.delete(if_unused=False, if_empty=False)


async def by_aiormq(url: str, load: Load, meter: Meter) -> None:
    body, count, name = load.body, Count(load.total), uuid.uuid4().hex
    publishing, consuming = await aiormq.connect(url), await aiormq.connect(url)
    sender = await publishing.channel(on_return_raises=True)
    receiver = await consuming.channel()
    await receiver.basic_qos(prefetch_count=load.prefetch)
    await receiver.queue_declare(name, durable=True, arguments=QUIET)

    async def take(incoming: Any) -> None:
        await receiver.basic_ack(incoming.delivery.delivery_tag)
        count.one()

    async def publish(request: str, number: int) -> None:
        properties = aiormq.spec.Basic.Properties(delivery_mode=2, headers={"request": request, "chunk": number})
        await sender.basic_publish(body, routing_key=name, properties=properties, mandatory=True)

    await receiver.basic_consume(name, take)
    with meter:
        await at_once(load, publish)
        await count.done.wait()
    await receiver.queue_delete(name)
    await publishing.close()
    await consuming.close()


async def by_faststream(url: str, load: Load, meter: Meter) -> None:
    body, count, name = load.body, Count(load.total), uuid.uuid4().hex
    broker = RabbitBroker(url, logger=None)
    queue = RabbitQueue(name, durable=True, arguments=QUIET)

    @broker.subscriber(queue)
    async def take(_body: bytes) -> None:
        count.one()

    async with broker:
        await broker.start()
        with meter:
            await at_once(load, lambda _request, _number: broker.publish(body, queue, persist=True, mandatory=True))
            await count.done.wait()


async def through_faststream(url: str, load: Load, meter: Meter) -> None:
    """Three stages: the middle one returns what it took, and a publisher sends it on."""
    body, count = load.body, Count(load.total)
    broker = RabbitBroker(url, logger=None)
    first, second = (RabbitQueue(uuid.uuid4().hex, durable=True, arguments=QUIET) for _ in range(2))

    @broker.subscriber(first)
    @broker.publisher(second, persist=True)
    async def forward(body: bytes) -> bytes:
        return body

    @broker.subscriber(second)
    async def take(_body: bytes) -> None:
        count.one()

    async with broker:
        await broker.start()
        with meter:
            await at_once(load, lambda _request, _number: broker.publish(body, first, persist=True, mandatory=True))
            await count.done.wait()


async def by_pika(url: str, load: Load, meter: Meter) -> None:
    await asyncio.to_thread(_by_pika, url, load, meter)


def _by_pika(url: str, load: Load, meter: Meter) -> None:
    body, name, ready = load.body, uuid.uuid4().hex, threading.Event()

    def consume() -> None:
        connection = pika.BlockingConnection(pika.URLParameters(url))
        channel = connection.channel()
        channel.queue_declare(name, durable=True, arguments=QUIET)
        channel.basic_qos(prefetch_count=load.prefetch)
        ready.set()
        left = load.total
        for method, _properties, _body in channel.consume(name):
            channel.basic_ack(method.delivery_tag)
            left -= 1
            if not left:
                break
        channel.cancel()
        channel.queue_delete(name)
        connection.close()

    consumer = threading.Thread(target=consume)
    consumer.start()
    ready.wait()
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    with meter:
        for number in range(load.chunks):
            for request in load.names:
                properties = pika.BasicProperties(delivery_mode=2, headers={"request": request, "chunk": number})
                channel.basic_publish("", name, body, properties, mandatory=True)
        consumer.join()
    connection.close()


async def by_kombu(url: str, load: Load, meter: Meter) -> None:
    await asyncio.to_thread(_by_kombu, url, load, meter)


def _by_kombu(url: str, load: Load, meter: Meter) -> None:
    body, left, ready = load.body, [load.total], threading.Event()
    queue = kombu.Queue(uuid.uuid4().hex, durable=True, queue_arguments=QUIET)

    def take(_body: Any, incoming: Any) -> None:
        incoming.ack()
        left[0] -= 1

    def consume() -> None:
        with kombu.Connection(url) as connection, connection.Consumer(queue, callbacks=[take]) as consumer:
            consumer.qos(prefetch_count=load.prefetch)
            ready.set()
            while left[0]:
                connection.drain_events(timeout=60)
            queue(connection.default_channel).delete()

    consumer = threading.Thread(target=consume)
    consumer.start()
    ready.wait()
    with kombu.Connection(url, transport_options={"confirm_publish": True}) as connection, meter:
        producer = connection.Producer()
        for number in range(load.chunks):
            for request in load.names:
                producer.publish(
                    body,
                    routing_key=queue.name,
                    delivery_mode=2,
                    mandatory=True,
                    headers={"request": request, "chunk": number},
                    content_type="application/octet-stream",
                    content_encoding="binary",
                )
        consumer.join()
