"""100 requests of 50 chunks each while the broker, or the way to it, is injured at a random moment.

``STAGEWIRE_CHAOS_RUNS`` says how often each is done; twice by default, and the slow ones half as often.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from stagewire import ChunkKey, ChunkLink, ChunkTransport, Retryable
from stagewire.testing import StubContext
from stagewire.testing.services import FaultProxy, PrivateRabbitMQ
from stagewire_rabbitmq import RabbitMQOptions, make_transport

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

RUNS = int(os.environ.get("STAGEWIRE_CHAOS_RUNS", "2"))
REQUESTS, CHUNKS = 100, 50
FEW = (RUNS + 1) // 2
CLOCK = 60.0
"""Seconds after which a run has hung."""

IN_HAND = 8
"""Chunks of one request that are put together."""


@dataclass
class Load:
    """Puts every request's chunks from one thread and takes them with another, as the ChunkAdapter does."""

    send: ChunkTransport
    receive: ChunkTransport
    taken: dict[str, list[int]] = field(default_factory=dict)
    done: int = 0
    injure_at: int = 0
    reached: threading.Event = field(default_factory=threading.Event)

    def put(self) -> None:
        put_many: Any = getattr(self.send, "put_many", None)
        ends = time.monotonic() + CLOCK
        messages: dict[ChunkKey, Any] = {}
        left = {f"r{number}": 0 for number in range(REQUESTS)}
        while left:
            assert time.monotonic() < ends, f"{len(left)} requests cannot be put"
            items = [self._item(messages, name, chunk) for name, first in left.items() for chunk in _next(first)]
            results = put_many(items)
            for name in list(left):
                mine = [result for (key, _), result in zip(items, results, strict=True) if key.request == name]
                assert all(result is None or isinstance(result, Retryable) for result in mine), mine
                left[name] += next((place for place, result in enumerate(mine) if result is not None), len(mine))
                if left[name] == CHUNKS:
                    del left[name]
            if any(results):
                time.sleep(0.01)

    @staticmethod
    def _item(messages: dict[ChunkKey, Any], name: str, chunk: int) -> tuple[ChunkKey, Any]:
        """A chunk that is put again is the same object (CH-7)."""
        key = ChunkKey(name, "up", chunk)
        return key, messages.setdefault(key, {"data": chunk, "finished": chunk == CHUNKS - 1})

    def take(self) -> None:
        get_many: Any = getattr(self.receive, "get_many", None)
        ends = time.monotonic() + CLOCK
        waiting = {f"r{number}": 0 for number in range(REQUESTS)}
        while waiting:
            assert time.monotonic() < ends, (
                f"{len(waiting)} requests have not ended, one at {next(iter(waiting.items()))}"
            )
            if not sum(self._take_of(get_many, name, waiting) for name in list(waiting)):
                time.sleep(0.005)

    def _take_of(self, get_many: Any, name: str, waiting: dict[str, int]) -> int:
        got = [message["data"] for message in get_many(ChunkKey(name, "up", waiting[name]), 16)]
        self.taken.setdefault(name, []).extend(got)
        waiting[name] += len(got)
        if waiting[name] == CHUNKS:
            del waiting[name]
        self.done += len(got)
        if self.done >= self.injure_at:
            self.reached.set()
        return len(got)


def _next(first: int) -> range:
    return range(first, min(first + IN_HAND, CHUNKS))


def endure(url: str, injure: Callable[[], None], *, queue_type: str = "classic") -> Any:
    """Run the load, injure at a random moment of it, and check every request; returns the edge's counters."""

    async def main() -> Any:
        async with AsyncExitStack() as stack:
            edge = f"chaos-{time.monotonic_ns()}"
            ends = []
            for _ in range(2):
                values = {"url": url, "put_timeout": 2, "heartbeat": 4, "queue_type": queue_type}
                values |= {"request_chunks": 2 * IN_HAND}  # the sender needs grants to go on
                transport = make_transport(RabbitMQOptions.model_validate(values), StubContext())
                stack.push_async_callback(transport.close)
                await transport.open()
                ends.append(transport)
            load = Load(
                ends[0].chunks(ChunkLink(edge, "up", "down", role="send")),
                ends[1].chunks(ChunkLink(edge, "up", "down", role="receive")),
                injure_at=random.randrange(1, REQUESTS * CHUNKS // 2),
            )
            await asyncio.sleep(1.6)  # a queue killed within about a second of its declaration may come back empty

            async def hurt() -> None:
                await asyncio.to_thread(load.reached.wait, CLOCK)
                await asyncio.to_thread(injure)

            await asyncio.gather(asyncio.to_thread(load.put), asyncio.to_thread(load.take), hurt())
            assert load.taken == {f"r{number}": list(range(CHUNKS)) for number in range(REQUESTS)}
            await _is_empty(ends[1], edge)
            return ends[0].stats()[edge]

    return asyncio.run(main())


async def _is_empty(transport: Any, edge: str) -> None:
    """Repeats of what was sent again may still be on their way; then nothing is held or unacknowledged."""
    face = transport.chunks(ChunkLink(edge, "up", "down", role="receive"))
    for _ in range(100):
        if face.unread == (0, 0):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{face.unread} messages and bytes are still unacknowledged")


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_tr7_the_broker_is_killed_under_load(mortal_rabbitmq: PrivateRabbitMQ, queue_type: str) -> None:
    def kill() -> None:
        mortal_rabbitmq.kill()
        mortal_rabbitmq.start()

    for _ in range(RUNS if queue_type == "classic" else FEW):
        assert endure(mortal_rabbitmq.url, kill, queue_type=queue_type)["reconnects"] >= 1


def test_tr7_connections_are_cut_under_load(rabbitmq_node: PrivateRabbitMQ | None) -> None:
    with through_proxy(rabbitmq_node) as proxy:
        for _ in range(RUNS):
            assert endure(url_of(proxy), proxy.cut)["reconnects"] >= 1


def test_tr7_connections_are_half_open_for_10_s_under_load(rabbitmq_node: PrivateRabbitMQ | None) -> None:
    with through_proxy(rabbitmq_node) as proxy:

        def half_open() -> None:
            proxy.half_open(on=True)
            time.sleep(10)
            proxy.half_open(on=False)

        for _ in range(FEW):
            endure(url_of(proxy), half_open)


def test_tr5_the_broker_is_blocked_by_its_memory_alarm_under_load(mortal_rabbitmq: PrivateRabbitMQ) -> None:
    def block() -> None:
        mortal_rabbitmq.set_memory_alarm(on=True)
        time.sleep(1)
        mortal_rabbitmq.set_memory_alarm(on=False)

    for _ in range(RUNS):
        endure(mortal_rabbitmq.url, block)


def through_proxy(node: PrivateRabbitMQ | None) -> FaultProxy:
    if node is None:
        pytest.skip("the proxy stands in front of a private broker")
    return FaultProxy(node.port)


def url_of(proxy: FaultProxy) -> str:
    return f"amqp://guest:guest@127.0.0.1:{proxy.port}/%2F"
