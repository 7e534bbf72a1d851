"""TR-7: what a transport with a connection promises when that is lost. One without has none of these tests.

Above the transport stand an adapter or a client that puts again what failed in a retryable way, and drops what comes
twice; the tests do the same.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from stagewire.errors import Retryable
from stagewire.spec.transport import BatchTransport, Message
from stagewire.testing.suites.base import background
from stagewire.testing.suites.transport import Ends, TransportHarness, chunk, key, over_transports


class ReconnectSuite(TransportHarness):
    """Tests of a transport whose connection is cut. Override `transports` and `interrupt`.

    Attributes of `TransportLimits` that matter: at least 8 chunks of a request and 8 messages fit.
    """

    async def interrupt(self, ends: Ends) -> None:
        """Cut both ends' connections as hard as the world does, and return once the broker can be reached again."""
        raise NotImplementedError("override interrupt()")

    async def insist(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        """Do what callers do: try again what failed in a retryable way, for ``patience`` seconds."""
        async with asyncio.timeout(self.patience):
            while True:
                try:
                    return await attempt()
                except Retryable:
                    await asyncio.sleep(0.01)

    @over_transports
    async def test_tr7_chunks_put_before_during_and_after_a_cut_arrive_once(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        for number in range(8):
            if number == 3:
                await self.interrupt(ends)
            message = chunk(number, finished=number == 7)
            await self.insist(functools.partial(self.call, send.put, key("r", number), message))
        assert await self.receive_run(receive, "r", 8) == list(range(8))
        await self.stays_empty(receive, key("r", 3))

    @over_transports
    async def test_tr7_chunks_that_arrived_before_a_cut_can_still_be_taken(self, ends: Ends) -> None:
        send, receive = self.faces(ends)
        for number in range(4):
            await self.call(send.put, key("r", number), chunk(number))
        assert await self.receive_run(receive, "r", 2) == [0, 1]
        await self.interrupt(ends)
        rest = [(await self.receive(receive, key("r", number)))["data"] for number in (2, 3)]
        assert rest == [2, 3]
        await self.stays_empty(receive, key("r", 1))

    @over_transports
    async def test_tr7_messages_survive_a_cut(self, ends: Ends) -> None:
        box, sender, receiver = self.unique("mailbox"), ends.sender.batches(), ends.receiver.batches()
        await self.insist(lambda: sender.put_batch(box, [Message(0), Message(1)]))
        await self.interrupt(ends)
        await self.insist(lambda: sender.put_batch(box, [Message(2)]))
        assert await self.collect(receiver, box, 3) == {0, 1, 2}

    @over_transports
    async def test_tr7_a_consumer_that_waits_through_a_cut_is_served_after_it(self, ends: Ends) -> None:
        box, sender, receiver = self.unique("mailbox"), ends.sender.batches(), ends.receiver.batches()
        async with background(self.collect(receiver, box, 1)) as waiting:
            await asyncio.sleep(self.moment)
            await self.interrupt(ends)
            await self.insist(lambda: sender.put_batch(box, [Message("after")]))
            async with asyncio.timeout(self.patience):
                assert await waiting == {"after"}

    async def collect(self, transport: BatchTransport, mailbox: str, count: int) -> set[Any]:
        """Take until ``count`` different payloads were seen; one may come more than once."""
        seen: set[Any] = set()

        async def take() -> None:
            async with transport.get_batch(mailbox, timeout=self.patience) as batch:
                seen.update(delivery.message.payload for delivery in batch)

        async with asyncio.timeout(self.patience):
            while len(seen) < count:
                await self.insist(take)
        return seen
