"""The RabbitMQ transport against brokers that are killed, blocked, frozen, misconfigured or not there."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pika
import pytest

from stagewire import (
    DEAD_MAILBOX,
    DEAD_REASON,
    ChunkKey,
    ChunkLink,
    ChunkTransport,
    Message,
    Permanent,
    Retryable,
    TransportError,
    TransportFull,
)
from stagewire.testing import StubContext
from stagewire.testing.services import FaultProxy, PrivateRabbitMQ, free_port
from stagewire_rabbitmq import RabbitMQOptions, make_transport

pytestmark = pytest.mark.integration

PATIENCE = 30.0


def link(role: Any, edge: str = "up->down") -> ChunkLink:
    return ChunkLink(edge, "up", "down", role=role)


def key(request: str, chunk: int) -> ChunkKey:
    return ChunkKey(request, "up", chunk)


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Any]:
    transport = make_transport(RabbitMQOptions.model_validate({"url": url, **options}), StubContext())
    await transport.open()
    try:
        yield transport
    finally:
        await transport.close()


def put_all(face: ChunkTransport, request: str, count: int) -> None:
    """Put a run, again and again where that may succeed."""
    for number in range(count):
        message: Any = {"data": number, "finished": number == count - 1}
        while True:
            try:
                face.put(key(request, number), message)
            except Retryable:
                continue
            break


def take_all(face: ChunkTransport, request: str, count: int, at: Callable[[int], None] = lambda _number: None) -> None:
    """Take a run, in order; fails when a chunk does not come."""
    for number in range(count):
        deadline = time.monotonic() + PATIENCE
        while (message := face.get(key(request, number))) is None:
            assert time.monotonic() < deadline, f"chunk {number} of {request} did not arrive"
            time.sleep(0.002)
        assert message["data"] == number
        at(number)


def test_rabbitmq_trap_prefetch_deadlock_when_gets_come_out_of_order(amqp_url: str) -> None:
    async def main() -> None:
        window = {"prefetch_messages": 16, "coalesce_chunks": 1}
        async with opened(amqp_url, **window) as sender, opened(amqp_url, **window) as receiver:
            send, receive = sender.chunks(link("send")), receiver.chunks(link("receive"))
            for request in range(30):
                await asyncio.to_thread(put_all, send, f"r{request}", 10)
            for request in reversed(range(30)):
                await asyncio.to_thread(take_all, receive, f"r{request}", 10)
            assert receiver.stats()["up->down"]["parked"] > 0

    asyncio.run(main())


def test_tr7_connections_cut_under_load_lose_and_double_nothing(rabbitmq_node: PrivateRabbitMQ | None) -> None:
    if rabbitmq_node is None:
        pytest.skip("the proxy stands in front of a private broker")
    with FaultProxy(rabbitmq_node.port) as proxy:
        url = f"amqp://guest:guest@127.0.0.1:{proxy.port}/%2F"

        def cut(number: int) -> None:
            if number % 25 == 10:
                proxy.cut()

        async def main() -> None:
            async with opened(url, prefix="cut") as transport:
                face = transport.chunks(link("both"))
                putting = threading.Thread(target=put_all, args=(face, "r", 100))
                putting.start()
                await asyncio.to_thread(take_all, face, "r", 100, cut)
                await asyncio.to_thread(putting.join)

        asyncio.run(main())


def test_tr5_a_memory_alarm_stops_producers_is_named_and_is_survived(mortal_rabbitmq: PrivateRabbitMQ) -> None:
    node = mortal_rabbitmq

    async def main() -> None:
        async with opened(node.url, put_timeout=1) as transport:
            face = transport.chunks(link("both"))
            await asyncio.to_thread(put_all, face, "before", 1)
            await asyncio.to_thread(node.set_memory_alarm, on=True)
            message: Any = {"data": 0, "finished": True}
            with pytest.raises(Retryable):
                await asyncio.to_thread(face.put, key("r", 0), message)
            with pytest.raises(Retryable, match="stopped publishers"):
                await asyncio.to_thread(face.put, key("r", 0), message)
            await asyncio.to_thread(node.set_memory_alarm, on=False)
            await asyncio.to_thread(face.put, key("r", 0), message)
            await asyncio.to_thread(take_all, face, "r", 1)
            await asyncio.to_thread(put_all, face, "after", 1)
            await asyncio.to_thread(take_all, face, "after", 1)
            assert face.get(key("r", 0)) is None, "a put that had timed out arrived late, and was dropped"
            assert transport.stats()["up->down"]["duplicates"] > 0
            assert transport.stats()["up->down"]["blocked_seconds"] > 0

    asyncio.run(main())


def test_tr11_closing_before_a_frozen_broker_ends_in_time_and_leaves_no_thread(
    mortal_rabbitmq: PrivateRabbitMQ,
) -> None:
    async def main() -> None:
        async with opened(mortal_rabbitmq.url, put_timeout=0.5, close_timeout=1) as transport:
            face = transport.chunks(link("both"))
            await asyncio.to_thread(put_all, face, "before", 1)
            mortal_rabbitmq.process.pause()
            message: Any = {"data": 0, "finished": True}
            with pytest.raises(Retryable, match="does not answer"):
                await asyncio.to_thread(face.put, key("r", 0), message)

    asyncio.run(main())
    mortal_rabbitmq.process.resume()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("stagewire-")]


def test_tr5_a_queue_at_its_limit_refuses_until_it_is_read(amqp_url: str) -> None:
    async def main() -> None:
        async with opened(amqp_url, queue_bytes=20_000, coalesce_chunks=1) as sender:
            send = sender.chunks(link("send"))
            message: Any = {"data": b"x" * 1_000, "finished": False}

            def fill() -> int:
                for number in range(200):
                    try:
                        send.put(key("r", number), message)
                    except TransportFull:
                        return number
                raise AssertionError("the queue took all of it")

            count = await asyncio.to_thread(fill)
            async with opened(amqp_url, queue_bytes=20_000, coalesce_chunks=1) as receiver:
                receive = receiver.chunks(link("receive"))

                def drain() -> None:
                    for number in range(count):
                        while receive.get(key("r", number)) is None:
                            time.sleep(0.002)

                await asyncio.to_thread(drain)
                await asyncio.to_thread(send.put, key("r", count), message)

    asyncio.run(main())


def test_tr6_a_queue_declared_with_other_arguments_is_named_with_both_values(amqp_url: str) -> None:
    async def main() -> None:
        async with opened(amqp_url, expires=60) as first:
            await asyncio.to_thread(put_all, first.chunks(link("both")), "r", 1)
        async with opened(amqp_url, expires=61) as second:
            message: Any = {"data": 0, "finished": True}
            with pytest.raises(
                Permanent, match=r"x-message-ttl.*received '61000' but current is '60000'.*set the options"
            ):
                await asyncio.to_thread(second.chunks(link("send")).put, key("r", 0), message)

    asyncio.run(main())


def test_tr1_a_deleted_queue_is_declared_again(amqp_url: str, rabbitmq_node: PrivateRabbitMQ | None) -> None:
    if rabbitmq_node is None:
        pytest.skip("deleting queues takes the management API of a private broker")
    vhost = amqp_url.rpartition("/")[2]

    async def main() -> None:
        async with opened(amqp_url) as transport:
            face = transport.chunks(link("both"))
            await asyncio.to_thread(put_all, face, "first", 3)
            await asyncio.to_thread(take_all, face, "first", 3)
            await asyncio.to_thread(rabbitmq_node.api, "DELETE", f"queues/{vhost}/stagewire.chunks.up-%3Edown.0")
            await asyncio.to_thread(put_all, face, "second", 3)
            await asyncio.to_thread(take_all, face, "second", 3)

    asyncio.run(main())


def test_tr6_what_cannot_be_decoded_is_kept_as_a_dead_letter_and_stalls_nobody(amqp_url: str) -> None:
    def publish_nonsense() -> None:
        connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        connection.channel().basic_publish("", "stagewire.chunks.up->down.0", b"nonsense")
        connection.close()

    async def main() -> None:
        async with opened(amqp_url) as transport:
            face = transport.chunks(link("both"))
            await asyncio.to_thread(put_all, face, "before", 1)
            await asyncio.to_thread(publish_nonsense)
            await asyncio.to_thread(put_all, face, "after", 2)
            await asyncio.to_thread(take_all, face, "after", 2)
            async with transport.batches().get_batch("up->down.dead", timeout=PATIENCE) as batch:
                (letter,) = batch
                assert letter.message.payload == b"nonsense"
                assert letter.message.headers[DEAD_MAILBOX] == "up->down"
                assert "not a stagewire frame" in letter.message.headers[DEAD_REASON]
            assert transport.stats()["up->down"]["dead"] == 1

    asyncio.run(main())


def test_tr5_a_sender_whose_grants_were_lost_asks_and_goes_on(amqp_url: str) -> None:
    async def main() -> None:
        few = {"request_chunks": 2}
        async with opened(amqp_url, **few) as sender:
            send = sender.chunks(link("send"))
            message: Any = {"data": 0, "finished": False}
            await asyncio.to_thread(put_all, send, "other", 1)
            for number in range(2):
                await asyncio.to_thread(send.put, key("r", number), message)
            # This reader knows windows of another size, so it does not tell before half of its own is taken.
            async with opened(amqp_url, request_chunks=1_000) as receiver:
                receive = receiver.chunks(link("receive"))

                def take() -> None:
                    for number in range(2):
                        while receive.get(key("r", number)) is None:
                            time.sleep(0.002)

                await asyncio.to_thread(take)
                deadline = time.monotonic() + PATIENCE
                while True:
                    try:
                        await asyncio.to_thread(send.put, key("r", 2), message)
                    except TransportFull:
                        assert time.monotonic() < deadline, "the window stays closed"
                        await asyncio.sleep(0.05)
                    else:
                        break

    asyncio.run(main())


def test_tr2_what_a_dead_consumer_had_taken_goes_to_the_next(amqp_url: str) -> None:
    async def main() -> None:
        async with opened(amqp_url) as sender:
            await sender.batches().put_batch("jobs", [Message(1), Message(2)])
            async with opened(amqp_url) as first, first.batches().get_batch("jobs", timeout=PATIENCE) as batch:
                assert [delivery.message.payload for delivery in batch] == [1]
            async with (
                opened(amqp_url) as second,
                second.batches().get_batch("jobs", limit=2, timeout=PATIENCE) as batch,
            ):
                assert [delivery.message.payload for delivery in batch] == [1, 2]
                assert all(delivery.redelivered for delivery in batch)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("amqp://guest:secret-wrong@127.0.0.1:{port}/%2F", "wrong user name or password"),
        ("amqp://guest:guest@127.0.0.1:{port}/missing", "virtual host does not exist"),
        ("amqp://guest:guest@127.0.0.1:{closed}/%2F", "nothing listens there"),
        ("amqp://guest:guest@no-such-host.invalid:5672/%2F", "host name is not known"),
        ("amqps://guest:guest@127.0.0.1:{port}/%2F", "no TLS or AMQP handshake"),
    ],
    ids=["password", "virtual host", "no broker", "host", "tls"],
)
def test_a_broker_that_cannot_be_used_is_named_in_one_line(
    rabbitmq_node: PrivateRabbitMQ | None, address: str, said: str
) -> None:
    if rabbitmq_node is None:
        pytest.skip("wrong addresses are made from that of a private broker")

    async def main() -> None:
        with pytest.raises(TransportError, match=said) as raised:
            async with opened(address.format(port=rabbitmq_node.port, closed=free_port()), connect_timeout=5):
                pass
        assert "secret" not in str(raised.value)
        assert "\n" not in str(raised.value)

    asyncio.run(main())
