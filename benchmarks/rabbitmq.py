"""Chunks over RabbitMQ, end to end: saved, confirmed, got, acknowledged, polled; beside what is written by hand.

Ours is two ChunkAdapters over the transport, as two stages have them. All subjects use one private broker, durable
queues, persistent messages and confirms, and acknowledge each message after it was taken. From 256 KiB on ours goes by
claim through a private Redis, as it does in a pipeline.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import pika

import _amqp_peers as peers
from _amqp import Load, Meter
from _table import Row, show
from stagewire import ChunkLink, Transport, TransportFull
from stagewire.claims import ClaimCheck, ClaimedTransport
from stagewire.testing import StubContext
from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis
from stagewire_chunks import ChunkAdapter
from stagewire_rabbitmq import RabbitMQOptions, make_transport
from stagewire_redis import RedisKVOptions, RedisLeaseOptions, make_kv, make_lease

KIB, MIB = 1024, 1024 * 1024
PEER = "aio-pika"
Subject = Callable[[str, Load, Meter], Awaitable[None]]


@asynccontextmanager
async def opened(url: str, redis: str | None) -> AsyncIterator[Transport]:
    """A transport as a pipeline has it: with claims where there is a Redis."""
    async with AsyncExitStack() as stack:
        transport: Transport = make_transport(RabbitMQOptions.model_validate({"url": url}), StubContext())
        if redis is not None:
            kv = make_kv(RedisKVOptions.model_validate({"url": redis}), StubContext())
            lease = make_lease(RedisLeaseOptions.model_validate({"url": redis}), StubContext())
            for store in (kv, lease):
                await store.open()
                stack.push_async_callback(store.close)
            transport = ClaimedTransport(transport, ClaimCheck(kv, lease, clock=time.monotonic))
        await transport.open()
        stack.push_async_callback(transport.close)
        yield transport


class Hop:
    """Two adapters at the two ends of an edge."""

    def __init__(self, sender: Transport, receiver: Transport, stage: int) -> None:
        edge = f"{stage}->{stage + 1}"
        self._some = threading.Event()
        self.sender = ChunkAdapter(sender.chunks(ChunkLink(edge, stage, stage + 1, role="send")), stage)
        face = receiver.chunks(ChunkLink(edge, stage, stage + 1, role="receive"))
        self.receiver = ChunkAdapter(face, stage + 1, stage, on_ready=self._some.set)

    def save(self, request: str, body: Any, *, final: bool) -> None:
        while True:
            try:
                self.sender.save_async(request, body, final)
            except TransportFull:
                self.sender.wait_for_room(request, 60)
            else:
                return

    def poll(self) -> dict[str, list[Any]]:
        """Wait for messages and take them."""
        self._some.wait(60)
        self._some.clear()
        return {request: list(messages) for request, messages in self.receiver.poll_ready().items()}

    def stop(self) -> None:
        self.sender.stop(drain=True)
        self.receiver.stop()


def feed(hop: Hop, load: Load) -> None:
    body = load.body
    for number in range(load.chunks):
        for name in load.names:
            hop.save(name, body, final=number == load.chunks - 1)


def drain(hop: Hop, load: Load) -> None:
    left = load.total
    while left:
        for messages in hop.poll().values():
            assert not any("error" in message for message in messages), messages
            left -= len(messages)


def forward(source: Hop, target: Hop, load: Load) -> None:
    left = load.total
    while left:
        for request, messages in source.poll().items():
            left -= len(messages)
            for message in messages:
                target.save(request, message["data"], final=message["finished"])


async def by_adapter(url: str, load: Load, meter: Meter, redis: str | None = None, stages: int = 2) -> None:
    """Carry the load through so many stages, each with a thread of its own."""
    async with opened(url, redis) as sender, opened(url, redis) as receiver:
        hops = [Hop(sender, receiver, stage) for stage in range(stages - 1)]
        for hop in hops:
            for name in load.names:
                hop.receiver.load_async(name)
        works = [partial(feed, hops[0], load), partial(drain, hops[-1], load)]
        works += [partial(forward, one, other, load) for one, other in pairwise(hops)]
        with meter:
            await asyncio.gather(*(asyncio.to_thread(work) for work in works))
        for hop in hops:
            await asyncio.to_thread(hop.stop)


def compare(node: PrivateRabbitMQ, subjects: Mapping[str, Subject], load: Load, rounds: int) -> dict[str, Meter]:
    """Run every subject once a round, in turn; returns the medians of each."""
    found: dict[str, list[Meter]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            meter = Meter(node.process.pid)
            asyncio.run(asyncio.wait_for(subject(node.url, load, meter), 300))
            found[name].append(meter)
    return {name: median(meters) for name, meters in found.items()}


def median(meters: list[Meter]) -> Meter:
    wall, client, server = (
        statistics.median(getattr(meter, name) for meter in meters) for name in ("wall", "client", "server")
    )
    return Meter(meters[0].broker, wall, client, server)


def rows(title: str, load: Load, found: Mapping[str, Meter]) -> list[Row]:
    """Rates of all, and what a chunk costs beside the first peer: each with the ratio of ours to it."""
    ours = found["stagewire"]
    unit, amount = ("chunks/s", load.total) if load.size < 64 * KIB else ("MiB/s", load.total * load.size / MIB)
    made = [
        Row(f"{title}: {name}", amount / meter.wall, unit, *compared(name, meter.wall, ours.wall))
        for name, meter in found.items()
    ]
    for what, cost in (("client CPU", "client"), ("broker CPU", "server")):
        for name in ("stagewire", PEER):
            spent = getattr(found[name], cost)
            made.append(
                Row(
                    f"{title}: {name}, {what}",
                    spent / load.total * 1e6,
                    "µs/chunk",
                    *compared(name, getattr(ours, cost), spent),
                )
            )
    return made


def compared(name: str, value: float, peer: float) -> tuple[str, float] | tuple[()]:
    """Return the last two fields of a row; nothing for our own."""
    return () if name == "stagewire" else ("stagewire is", value / max(peer, 0.01))


def ping_ours(url: str, count: int) -> list[float]:
    """Return seconds from save to poll, one chunk at a time."""

    async def main() -> list[float]:
        async with opened(url, None) as sender, opened(url, None) as receiver:
            hop = Hop(sender, receiver, 0)
            hop.receiver.load_async("r")
            found = await asyncio.to_thread(_ping_adapter, hop, count)
            await asyncio.to_thread(hop.stop)
            return found

    return asyncio.run(main())


def _ping_adapter(hop: Hop, count: int) -> list[float]:
    found = []
    for number in range(count):
        began = time.perf_counter()
        hop.save("r", b"x" * KIB, final=number == count - 1)
        while not hop.poll():
            pass
        found.append(time.perf_counter() - began)
        time.sleep(0.001)
    return found


def ping_pika(url: str, count: int) -> list[float]:
    """Return seconds from a confirmed publish until a consumer of its own thread and connection has the message."""
    came, ready, name = threading.Event(), threading.Event(), "ping"

    def consume() -> None:
        connection = pika.BlockingConnection(pika.URLParameters(url))
        channel = connection.channel()
        channel.queue_declare(name, durable=True, arguments=peers.QUIET)
        channel.basic_qos(prefetch_count=256)
        ready.set()
        left = count
        for method, _properties, _body in channel.consume(name):
            came.set()
            channel.basic_ack(method.delivery_tag)
            left -= 1
            if not left:
                break
        connection.close()

    consumer = threading.Thread(target=consume)
    consumer.start()
    ready.wait()
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    found = []
    for _ in range(count):
        began = time.perf_counter()
        channel.basic_publish("", name, b"x" * KIB, pika.BasicProperties(delivery_mode=2), mandatory=True)
        came.wait(60)
        found.append(time.perf_counter() - began)
        came.clear()
        time.sleep(0.001)
    consumer.join()
    connection.close()
    return found


def latencies(url: str, count: int, rounds: int) -> list[Row]:
    runs = [(ping_ours(url, count), ping_pika(url, count)) for _ in range(rounds)]
    made = []
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        ours, bare = (
            statistics.median(sorted(run[side])[int(share * (count - 1))] for run in runs) * 1e6 for side in (0, 1)
        )
        made.append(Row(f"latency {label}, 1 KiB, unloaded: stagewire", ours, "µs"))
        made.append(Row(f"latency {label}, 1 KiB, unloaded: pika", bare, "µs", "stagewire is", ours / bare))
    return made


BY_HAND: dict[str, Subject] = {
    PEER: peers.by_aio_pika,
    "aiormq": peers.by_aiormq,
    "pika": peers.by_pika,
    "kombu": peers.by_kombu,
    "FastStream": peers.by_faststream,
}

SIZES = {"1 KiB": (KIB, 60), "64 KiB": (64 * KIB, 8), "1 MiB": (MIB, 1), "8 MiB": (8 * MIB, 1)}
"""Bytes, and how many chunks each of 100 requests has; one request alone has ten times as many."""


def measure(sizes: Sequence[str], *, quick: bool) -> list[Row]:
    """Run everything against one private broker and one private Redis."""
    rounds, made = 1 if quick else 5, []
    with ExitStack() as stack:
        node, redis = stack.enter_context(PrivateRabbitMQ()), stack.enter_context(PrivateRedis())
        for label in sizes:
            size, chunks = SIZES[label]
            ours: Subject = by_adapter if size < 256 * KIB else partial(by_adapter, redis=redis.url)
            for requests in (1, 100):
                load = Load(requests, chunks * (10 if requests == 1 else 1), size)
                title = f"{label}, {requests} request{'s' if requests > 1 else ''}"
                made += rows(title, load, compare(node, {"stagewire": ours, **BY_HAND}, load, rounds))
        load = Load(100, 20, KIB)
        through: dict[str, Subject] = {
            "stagewire": partial(by_adapter, stages=3),
            PEER: peers.through_aio_pika,
            "FastStream": peers.through_faststream,
        }
        made += rows("three stages, 1 KiB, 100 requests", load, compare(node, through, load, rounds))
        made += latencies(node.url, 200 if quick else 1_000, 3 if quick else 5)
    return made


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # peers report that their queue was deleted
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one round each")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES), help="default: all")
    arguments = parser.parse_args()
    show("Chunks over RabbitMQ", measure(arguments.sizes, quick=arguments.quick))
