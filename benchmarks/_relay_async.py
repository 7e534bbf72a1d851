"""What people write by hand on asyncio: aio-pika, aiormq and FastStream."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import aio_pika
import aiormq
from faststream.rabbit import Channel, RabbitBroker, RabbitMessage, RabbitQueue

from _relay import PREFETCH, LoopSubject, headers


class AioPika(LoopSubject):
    """aio-pika: one connection to publish, one to consume."""

    name = "aio-pika"

    async def connect(self, url: str, queues: Sequence[str]) -> None:
        self._publishing, self._consuming = await aio_pika.connect(url), await aio_pika.connect(url)
        self._channel = await self._publishing.channel(publisher_confirms=True, on_return_raises=True)
        self._first = queues[0]
        for queue, following in zip(queues, [*queues[1:], None], strict=True):
            channel = await self._consuming.channel()
            await channel.set_qos(PREFETCH)
            declared = await channel.declare_queue(queue, durable=True)
            await declared.consume(self._handler(following))

    def _handler(self, following: str | None) -> Callable[[Any], Coroutine[Any, Any, None]]:
        async def handle(message: Any) -> None:
            if following is None:
                self.arrived()
            else:
                await self._send(message.body, following, message.headers)
            await message.ack()

        return handle

    async def _send(self, body: bytes, queue: str, identity: Any) -> None:
        message = aio_pika.Message(body, headers=identity, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self._channel.default_exchange.publish(message, queue, mandatory=True)

    async def publish(self, body: bytes, request: str, chunk: int) -> None:
        await self._send(body, self._first, headers(request, chunk))

    async def disconnect(self) -> None:
        await self._publishing.close()
        await self._consuming.close()


class Aiormq(LoopSubject):
    """aiormq, which aio-pika is built upon."""

    name = "aiormq"

    async def connect(self, url: str, queues: Sequence[str]) -> None:
        self._publishing, self._consuming = await aiormq.connect(url), await aiormq.connect(url)
        self._channel = await self._publishing.channel(publisher_confirms=True, on_return_raises=True)
        self._first = queues[0]
        for queue, following in zip(queues, [*queues[1:], None], strict=True):
            channel = await self._consuming.channel()
            await channel.basic_qos(prefetch_count=PREFETCH)
            await channel.queue_declare(queue, durable=True)
            await channel.basic_consume(queue, self._handler(following))

    def _handler(self, following: str | None) -> Callable[[Any], Coroutine[Any, Any, None]]:
        async def handle(message: Any) -> None:
            if following is None:
                self.arrived()
            else:
                await self._send(message.body, following, message.header.properties.headers)
            await message.channel.basic_ack(message.delivery.delivery_tag)

        return handle

    async def _send(self, body: bytes, queue: str, identity: Any) -> None:
        properties = aiormq.spec.Basic.Properties(delivery_mode=2, headers=identity)
        await self._channel.basic_publish(body, routing_key=queue, properties=properties, mandatory=True)

    async def publish(self, body: bytes, request: str, chunk: int) -> None:
        await self._send(body, self._first, headers(request, chunk))

    async def disconnect(self) -> None:
        await self._publishing.close()
        await self._consuming.close()


class FastStream(LoopSubject):
    """FastStream: it acknowledges when the handler has ended."""

    name = "FastStream"

    async def connect(self, url: str, queues: Sequence[str]) -> None:
        channel = Channel(prefetch_count=PREFETCH, on_return_raises=True)
        self._broker = RabbitBroker(url, default_channel=channel, logger=None, log_level=logging.ERROR)
        self._first = queues[0]
        for queue, following in zip(queues, [*queues[1:], None], strict=True):
            self._broker.subscriber(RabbitQueue(queue, durable=True))(self._handler(following))
        await self._broker.start()

    def _handler(self, following: str | None) -> Callable[[Any, Any], Coroutine[Any, Any, None]]:
        async def handle(body: bytes, message: RabbitMessage) -> None:
            if following is None:
                self.arrived()
            else:
                await self._broker.publish(body, following, persist=True, headers=message.headers)

        return handle

    async def publish(self, body: bytes, request: str, chunk: int) -> None:
        await self._broker.publish(body, self._first, persist=True, headers=headers(request, chunk))

    async def disconnect(self) -> None:
        await self._broker.stop()
