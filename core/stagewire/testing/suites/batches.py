"""The promises of `BatchTransport`, TR-1 to TR-12 as far as they concern mailboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from stagewire.errors import Closed, Retryable, TransportFull
from stagewire.spec.transport import (
    DEAD_DELIVERIES,
    DEAD_MAILBOX,
    DEAD_REASON,
    DEAD_SUFFIX,
    TRANSPORT_STATS,
    BatchTransport,
    Delivery,
    Message,
)
from stagewire.testing.suites.base import background, refused
from stagewire.testing.suites.transport import Ends, TransportHarness, over_transports


class BatchTransportSuite(TransportHarness):
    """Tests of the asyncio face. Subclass it as ``Test…`` and override `transports`."""

    def mailbox(self, ends: Ends) -> tuple[str, BatchTransport, BatchTransport]:
        """Return the name of a new mailbox and both sides of it."""
        return self.unique("mailbox"), ends.sender.batches(), ends.receiver.batches()

    async def take(self, transport: BatchTransport, mailbox: str, limit: int = 1) -> list[Any]:
        """Take and acknowledge what is there, and return the payloads; fails when nothing comes."""
        async with transport.get_batch(mailbox, limit=limit, timeout=self.patience) as batch:
            assert batch, f"nothing arrived in {mailbox!r} within {self.patience:g} s"
            return payloads(batch)

    async def take_all(self, transport: BatchTransport, mailbox: str, count: int) -> list[Any]:
        """Take ``count`` messages, however many come at a time."""
        got: list[Any] = []
        while len(got) < count:
            got += await self.take(transport, mailbox, count - len(got))
        return got

    async def stays_silent(self, transport: BatchTransport, mailbox: str) -> None:
        """Fail when the mailbox has something within a moment."""
        async with transport.get_batch(mailbox, timeout=self.moment) as batch:
            assert not batch, f"nothing must be in {mailbox!r}, and there is {payloads(batch)!r}"

    async def give_back(self, transport: BatchTransport, mailbox: str, limit: int = 1) -> list[bool]:
        """Take messages and fail to handle them; returns which of them were redelivered ones."""
        redelivered: list[bool] = []
        try:
            async with transport.get_batch(mailbox, limit=limit, timeout=self.patience) as batch:
                redelivered += [delivery.redelivered for delivery in batch]
                _fail()
        except _HandlerFailed:
            pass
        return redelivered

    @over_transports
    async def test_tr1_messages_arrive_with_their_headers(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        message = Message({"text": "zwölf", "n": [1, 2.5, None, True]}, {"kind": "job"})
        await sender.put_batch(box, [message])
        async with receiver.get_batch(box, timeout=self.patience) as batch:
            assert [delivery.message.payload for delivery in batch] == [message.payload]
            assert dict(batch[0].message.headers) == {"kind": "job"}
            assert not batch[0].redelivered

    @over_transports
    async def test_tr2_handled_messages_are_gone_and_others_come_again(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message("handled"), Message("failed")])
        assert await self.take(receiver, box) == ["handled"]
        assert await self.give_back(receiver, box) == [False]
        async with receiver.get_batch(box, timeout=self.patience) as batch:
            assert payloads(batch) == ["failed"]
            assert batch[0].redelivered, "what was given back is marked as redelivered"
        await self.stays_silent(receiver, box)

    @over_transports
    async def test_tr2_a_cancelled_handler_gives_its_messages_back(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message("precious")])
        taken = asyncio.Event()

        async def handler() -> None:
            async with receiver.get_batch(box) as batch:
                taken.set()
                await asyncio.sleep(3600)
                raise AssertionError(f"it was cancelled with {batch}")

        async with background(handler()):
            async with asyncio.timeout(self.patience):
                await taken.wait()
        assert await self.take(receiver, box) == ["precious"]

    @over_transports
    async def test_tr2_a_getter_cancelled_while_it_waits_takes_nothing_along(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        for turns in range(5):
            async with background(self.take(receiver, box)):
                for _ in range(turns):
                    await asyncio.sleep(0)
        await sender.put_batch(box, [Message("for the living")])
        assert await self.take(receiver, box) == ["for the living"]

    @over_transports
    async def test_tr3_a_mailbox_keeps_the_order(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        half = self.limits.mailbox_messages // 2
        await sender.put_batch(box, [Message(number) for number in range(half)])
        for number in range(half, 2 * half):
            await sender.put_batch(box, [Message(number)])
        assert await self.take_all(receiver, box, 2 * half) == list(range(2 * half))

    @over_transports
    async def test_tr3_what_was_given_back_comes_before_what_came_later(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message(number) for number in range(2)])
        await self.give_back(receiver, box, limit=2)
        await sender.put_batch(box, [Message(number) for number in range(2, 4)])
        assert await self.take_all(receiver, box, 4) == [0, 1, 2, 3]

    @over_transports
    async def test_tr4_a_full_mailbox_stalls_no_other(self, ends: Ends) -> None:
        full, other = self.unique("full"), self.unique("other")
        sender, receiver = ends.sender.batches(), ends.receiver.batches()
        await self.fill(sender, full)
        async with background(sender.put_batch(full, [Message("waits")], timeout=3 * self.patience)):
            await asyncio.sleep(self.moment)
            async with asyncio.timeout(self.patience):
                await sender.put_batch(other, [Message("passes")], timeout=self.patience)
            assert await self.take(receiver, other) == ["passes"]

    @over_transports
    async def test_tr5_a_full_mailbox_makes_the_producer_wait(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        count = await self.fill(sender, box)
        late = sender.put_batch(box, [Message("late")], timeout=self.patience)
        async with background(late) as put:
            await asyncio.sleep(self.moment)
            assert not put.done(), "a put into a full mailbox must wait"
            assert await self.take_all(receiver, box, count) == list(range(count))
            await put
        assert await self.take(receiver, box) == ["late"]

    @over_transports
    async def test_tr5_a_put_that_finds_no_room_in_time_has_put_nothing(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        count = await self.fill(sender, box)
        await self.take(receiver, box)
        pair = [Message("half"), Message("fits")]
        await refused(TransportFull, sender.put_batch(box, pair, timeout=self.moment), "a put that finds no room")
        assert await self.take_all(receiver, box, count - 1) == list(range(1, count))
        await self.stays_silent(receiver, box)

    @over_transports
    async def test_tr6_a_poisoned_message_ends_in_the_dead_letter_mailbox(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message("poison", {"kind": "job"}), Message("healthy")])
        deliveries = self.limits.redeliveries + 1
        seen = [(await self.give_back(receiver, box))[0] for _ in range(deliveries)]
        assert seen == [False] + [True] * self.limits.redeliveries
        assert await self.take(receiver, box) == ["healthy"]
        async with receiver.get_batch(box + DEAD_SUFFIX, timeout=self.patience) as batch:
            assert payloads(batch) == ["poison"]
            headers = batch[0].message.headers
        assert headers["kind"] == "job", "a dead letter keeps its headers"
        assert "_HandlerFailed" in headers[DEAD_REASON], headers
        assert (headers[DEAD_MAILBOX], headers[DEAD_DELIVERIES]) == (box, str(deliveries))

    @over_transports
    async def test_tr8_get_batch_is_empty_after_its_timeout(self, ends: Ends) -> None:
        receiver = ends.receiver.batches()
        async with receiver.get_batch(self.unique("jobs"), timeout=self.moment) as batch:
            assert list(batch) == []

    @over_transports
    async def test_tr9_messages_that_wait_are_taken_together(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message(number) for number in range(5)])
        assert await self.take(receiver, box, limit=1) == [0]
        rest = await self.take_all(receiver, box, 4)
        assert rest == [1, 2, 3, 4]

    @over_transports
    async def test_tr9_one_failed_batch_touches_no_other(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message("fails"), Message("ends well")])
        async with receiver.get_batch(box, timeout=self.patience) as first:
            await self.give_back(receiver, box)
            assert payloads(first) == ["fails"]
        assert await self.take(receiver, box) == ["ends well"]
        await self.stays_silent(receiver, box)

    @over_transports
    async def test_tr10_small_and_large_payloads_arrive_alike(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        large = bytes(range(256)) * (self.limits.large // 256)
        sent = [b"", b"small", large, {"parts": [large[:-1], "text"]}]
        await sender.put_batch(box, [Message(payload) for payload in sent])
        got = await self.take_all(receiver, box, len(sent))
        assert got == sent, "payloads must arrive unchanged"
        assert [type(payload) for payload in got] == [type(payload) for payload in sent]

    @over_transports
    async def test_tr11_close_wakes_those_who_wait_and_is_idempotent(self, ends: Ends) -> None:
        box, receiver = self.unique("jobs"), ends.receiver.batches()
        async with background(self.take(receiver, box)) as waiting:
            await asyncio.sleep(self.moment)
            await ends.receiver.close()
            await ends.receiver.close()
            await refused(Closed, waiting, "a get on a transport that closes")
        await refused(Closed, receiver.put_batch(box, [Message(1)]), "a put after close")
        await refused(Closed, receiver.request(box, Message(1), timeout=1.0), "a request after close")

    @over_transports
    async def test_tr12_a_mailbox_is_counted(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message("one"), Message("two")])
        await self.give_back(receiver, box)
        await self.take_all(receiver, box, 2)
        sent, received = ends.sender.stats()[box], ends.receiver.stats()[box]
        for counters in (sent, received):
            assert set(TRANSPORT_STATS) <= set(counters), "every counter of TRANSPORT_STATS must be there"
        assert sent["puts"] == 2, sent
        assert received["gets"] == 3, received
        assert received["redeliveries"] >= 1, received

    @over_transports
    async def test_tr2_a_request_is_answered(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        async with background(self.serve(receiver, box, 5)):
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(self.ask(sender, box, number)) for number in range(5)]
            assert [task.result() for task in asked] == [(number, "twice") for number in range(0, 10, 2)]

    @over_transports
    async def test_tr5_a_request_that_nobody_answers_ends_in_time(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await refused(Retryable, sender.request(box, Message(1), timeout=self.moment), "an unanswered request")
        asking = background(sender.request(box, Message(2), timeout=self.patience))
        async with asking, receiver.get_batch(box, timeout=self.patience) as batch:
            assert batch, "the request must arrive"
        async with receiver.get_batch(box, timeout=self.moment) as batch:
            for delivery in batch:
                await delivery.reply("too late: nobody waits any more")

    @over_transports
    async def test_tr6_a_purged_mailbox_is_empty(self, ends: Ends) -> None:
        box, sender, receiver = self.mailbox(ends)
        await sender.put_batch(box, [Message(number) for number in range(3)])
        purged = 0

        async def purge() -> bool:
            nonlocal purged
            purged += await receiver.purge(box)
            return purged == 3

        await self.eventually_awaited(purge, "purge counts the three messages that were put")
        await self.stays_silent(receiver, box)

    async def fill(self, transport: BatchTransport, mailbox: str) -> int:
        """Put numbers into a mailbox until one finds no room; returns how many are in it."""
        for number in range(self.limits.mailbox_messages + 1):
            try:
                await transport.put_batch(mailbox, [Message(number)], timeout=self.moment)
            except TransportFull:
                return number
        raise AssertionError(f"more than {self.limits.mailbox_messages} messages were taken although nobody reads them")

    async def serve(self, transport: BatchTransport, mailbox: str, count: int) -> None:
        """Answer requests with twice their number."""
        for _ in range(count):
            async with transport.get_batch(mailbox) as batch:
                for delivery in batch:
                    await delivery.reply(2 * delivery.message.payload, {"how": "twice"})

    async def ask(self, transport: BatchTransport, mailbox: str, number: int) -> tuple[int, str]:
        """Ask for twice the number."""
        answer = await transport.request(mailbox, Message(number), timeout=self.patience)
        return answer.payload, answer.headers["how"]


class _HandlerFailed(Exception):
    """What the handlers of these tests fail with."""


def _fail() -> None:
    raise _HandlerFailed("it cannot be handled")


def payloads(batch: Sequence[Delivery]) -> list[Any]:
    """Return what the deliveries hold."""
    return [delivery.message.payload for delivery in batch]
