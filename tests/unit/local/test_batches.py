"""The asyncio face: dead letters, requests, and what it refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stagewire import (
    DEAD_DELIVERIES,
    DEAD_MAILBOX,
    DEAD_REASON,
    Closed,
    Message,
    Permanent,
    Retryable,
    TransportFull,
)
from stagewire.testing import run_virtual
from stagewire_local import LocalOptions, LocalTransport
from stagewire_local.batches import LocalBatches


async def opened(**options: Any) -> LocalBatches:
    transport = LocalTransport(LocalOptions.model_validate(options), clock=asyncio.get_running_loop().time)
    await transport.open()
    batches = transport.batches()
    assert isinstance(batches, LocalBatches)
    return batches


async def fail(batches: LocalBatches, mailbox: str, error: BaseException) -> None:
    async def handle() -> None:
        async with batches.get_batch(mailbox, timeout=0) as batch:
            assert batch
            raise error

    with pytest.raises(type(error)):
        await handle()


async def take(batches: LocalBatches, mailbox: str) -> list[Message]:
    async with batches.get_batch(mailbox, limit=99, timeout=0) as batch:
        return [delivery.message for delivery in batch]


def test_values_travel_by_reference() -> None:
    async def main() -> None:
        batches, payload = await opened(), {"a": object()}
        await batches.put_batch("box", [Message(payload)])
        assert (await take(batches, "box"))[0].payload is payload

    run_virtual(main())


def test_tr6_a_dead_letter_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        batches = await opened(redeliveries=1)
        await batches.put_batch("box", [Message("poison", {"kind": "job"})])
        await fail(batches, "box", ValueError("first"))
        await fail(batches, "box", ValueError("x" * 10_000))
        letter = (await take(batches, "box.dead"))[0]
        assert letter.payload == "poison"
        assert letter.headers["kind"] == "job"
        assert letter.headers[DEAD_REASON].startswith("ValueError: xxx")
        assert len(letter.headers[DEAD_REASON]) <= 500
        assert (letter.headers[DEAD_MAILBOX], letter.headers[DEAD_DELIVERIES]) == ("box", "2")
        stats = batches.stats()
        assert (stats["box"]["dead"], stats["box"]["outstanding"], stats["box"]["unread"]) == (1, 0, 0)

    run_virtual(main())
    assert "transport.dead_letter" in capsys.readouterr().err


def test_tr6_a_dead_letter_that_fails_stays_a_dead_letter() -> None:
    async def main() -> None:
        batches = await opened(redeliveries=0)
        await batches.put_batch("box", [Message("poison")])
        await fail(batches, "box", ValueError())
        for _ in range(5):
            await fail(batches, "box.dead", ValueError())
        assert sorted(batches.stats()) == ["box", "box.dead"]
        assert len(await take(batches, "box.dead")) == 1

    run_virtual(main())


def test_tr6_the_oldest_dead_letters_make_room() -> None:
    async def main() -> None:
        batches = await opened(redeliveries=0, mailbox_messages=3)
        for number in range(5):
            await batches.put_batch("box", [Message(number)])
            await fail(batches, "box", ValueError())
        assert [letter.payload for letter in await take(batches, "box.dead")] == [2, 3, 4]
        assert batches.stats()["box.dead"]["dropped"] == 2

    run_virtual(main())


def test_tr6_a_request_that_becomes_a_dead_letter_fails_at_once() -> None:
    async def main() -> None:
        batches = await opened(redeliveries=0)
        asking = asyncio.create_task(batches.request("asks", Message("poison"), timeout=100))
        await asyncio.sleep(0)
        await fail(batches, "asks", ValueError("cannot"))
        with pytest.raises(Permanent, match="gave the request up after 1 tries: ValueError: cannot"):
            await asking
        assert asyncio.get_running_loop().time() == 0

    run_virtual(main())


def test_a_request_is_answered_once_and_may_be_answered_by_the_next_consumer() -> None:
    async def main() -> None:
        batches = await opened()
        asking = asyncio.create_task(batches.request("asks", Message(1), timeout=10))
        await asyncio.sleep(0)
        await fail(batches, "asks", ValueError())
        async with batches.get_batch("asks") as batch:
            assert batch[0].redelivered
            await batch[0].reply("answer", {"a": "b"})
            await batch[0].reply("second answer")
        assert await asking == Message("answer", {"a": "b"})

    run_virtual(main())


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_tr6_a_request_that_nobody_took_is_withdrawn(how: str) -> None:
    async def main() -> None:
        batches = await opened()
        asking = asyncio.create_task(batches.request("asks", Message(1), timeout=3))
        await asyncio.sleep(1)
        if how == "cancel":
            asking.cancel()
        outcome = (await asyncio.gather(asking, return_exceptions=True))[0]
        assert type(outcome) is (Retryable if how == "timeout" else asyncio.CancelledError)
        assert await take(batches, "asks") == []

    run_virtual(main())


def test_a_request_that_was_taken_and_given_up_leaves_nothing() -> None:
    async def main() -> None:
        batches = await opened()
        asking = asyncio.create_task(batches.request("asks", Message(1), timeout=3))
        await asyncio.sleep(0)
        async with batches.get_batch("asks") as batch:
            await asyncio.sleep(5)
            await batch[0].reply("too late")
        with pytest.raises(Retryable, match="no reply from mailbox 'asks' within 3 s"):
            await asking
        assert await take(batches, "asks") == []
        assert batches.stats()["asks"]["outstanding"] == 0

    run_virtual(main())


def test_a_request_waits_for_room_within_its_time() -> None:
    async def main() -> None:
        batches = await opened(mailbox_messages=1)
        await batches.put_batch("asks", [Message(0)])
        with pytest.raises(Retryable):
            await batches.request("asks", Message(1), timeout=2)
        assert asyncio.get_running_loop().time() == 2
        assert [message.payload for message in await take(batches, "asks")] == [0]

    run_virtual(main())


def test_a_purged_request_fails_and_makes_room() -> None:
    async def main() -> None:
        batches = await opened(mailbox_messages=1)
        asking = asyncio.create_task(batches.request("asks", Message(1), timeout=9))
        await asyncio.sleep(0)
        putting = asyncio.create_task(batches.put_batch("asks", [Message(2)]))
        await asyncio.sleep(0)
        assert await batches.purge("asks") == 1
        await putting
        with pytest.raises(Retryable, match="purged"):
            await asking

    run_virtual(main())


def test_tr5_what_can_never_fit_is_refused_at_once() -> None:
    async def main() -> None:
        batches = await opened(mailbox_messages=2, mailbox_bytes=1000)
        with pytest.raises(Permanent, match=r"3 messages .* can never fit into mailbox 'box'"):
            await batches.put_batch("box", [Message(1)] * 3)
        with pytest.raises(Permanent, match="mailbox_bytes"):
            await batches.put_batch("box", [Message(bytes(1001))])
        with pytest.raises(Permanent):
            await batches.put_batch("box", [Message(None, {"large": "x" * 1000})])
        await batches.put_batch("box", [])
        assert batches.stats()["box"]["puts"] == 0

    run_virtual(main())


def test_tr5_the_default_time_to_wait_is_an_option() -> None:
    async def main() -> None:
        batches = await opened(mailbox_messages=1, put_timeout=7)
        await batches.put_batch("box", [Message(1)])
        with pytest.raises(TransportFull, match="7 s"):
            await batches.put_batch("box", [Message(2)])
        assert asyncio.get_running_loop().time() == 7

    run_virtual(main())


def test_a_limit_is_at_least_one() -> None:
    async def main() -> None:
        batches = await opened()
        with pytest.raises(ValueError, match="limit is 0"):
            batches.get_batch("box", limit=0)

    run_virtual(main())


def test_mailboxes_belong_to_the_loop_that_opened_them() -> None:
    batches = LocalTransport().batches()

    async def use() -> None:
        await batches.put_batch("box", [Message(1)])

    with pytest.raises(Permanent, match=r"is not open: await transport\.open\(\) first"):
        asyncio.run(use())
    assert isinstance(batches, LocalBatches)

    async def open_() -> None:
        batches.open()

    asyncio.run(open_())
    with pytest.raises(Permanent, match="another event loop"):
        asyncio.run(use())


def test_tr11_a_closed_transport_says_so_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        transport = LocalTransport()
        await transport.open()
        batches = transport.batches()
        await batches.put_batch("box", [Message(1), Message(2)])
        await transport.close()
        with pytest.raises(Closed):
            await batches.purge("box")
        assert transport.stats()["box"]["unread"] == 2

    asyncio.run(main())
    assert '"messages":2' in capsys.readouterr().err.replace('": ', '":')
