"""RabbitMQ keeps the promises of every transport, on classic queues."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import pytest

from stagewire.testing import StubContext
from stagewire.testing.suites import Ends, TransportSuite
from stagewire_rabbitmq import RabbitMQOptions, make_transport

pytestmark = pytest.mark.integration


class OnRabbitMQ(TransportSuite):
    patience: ClassVar[float] = 20.0
    moment: ClassVar[float] = 0.3
    queue_type: ClassVar[str]
    url: str

    test_tr5_a_put_that_finds_no_room_in_time_has_put_nothing = None  # type: ignore[assignment]

    @pytest.fixture(autouse=True)
    def _broker(self, amqp_url: str) -> None:
        self.url = amqp_url

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
