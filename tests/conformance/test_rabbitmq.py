"""RabbitMQ keeps the promises of every transport, on classic and on quorum queues."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import pytest

from stagewire.testing import StubContext
from stagewire.testing.services import FaultProxy
from stagewire.testing.suites import Ends, ReconnectSuite, TransportSuite
from stagewire_rabbitmq import RabbitMQOptions, make_transport

pytestmark = pytest.mark.integration


class OnRabbitMQ(TransportSuite, ReconnectSuite):
    """The broker is reached through a proxy, which cuts both ends' connections."""

    patience: ClassVar[float] = 20.0
    moment: ClassVar[float] = 0.3
    queue_type: ClassVar[str]
    url: str
    proxy: FaultProxy

    @pytest.fixture(autouse=True)
    def _broker(self, amqp_url: str) -> Iterator[None]:
        place = urllib.parse.urlsplit(amqp_url)
        with FaultProxy(place.port or 5672, place.hostname or "127.0.0.1") as self.proxy:
            self.url = f"amqp://{place.username}:{place.password}@127.0.0.1:{self.proxy.port}{place.path}"
            yield

    async def interrupt(self, ends: Ends) -> None:
        self.proxy.cut()

    def transports(self) -> AbstractAsyncContextManager[Ends]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Ends]:
        context = StubContext(clock=time.monotonic)
        options = RabbitMQOptions.model_validate(
            {
                "url": self.url,
                "queue_type": self.queue_type,
                "request_chunks": self.limits.request_chunks,
                "mailbox_messages": self.limits.mailbox_messages,
                "deliveries": self.limits.redeliveries,
                "expires": self.limits.expires,
                "put_timeout": 5,
            }
        )
        sender, receiver = make_transport(options, context), make_transport(options, context)
        await sender.open()
        await receiver.open()
        try:
            yield Ends(sender, receiver)
        finally:
            await sender.close()
            await receiver.close()


class TestClassicQueues(OnRabbitMQ):
    queue_type: ClassVar[str] = "classic"


class TestQuorumQueues(OnRabbitMQ):
    queue_type: ClassVar[str] = "quorum"
