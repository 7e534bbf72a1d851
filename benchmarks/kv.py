"""KV put and get of 1 KiB, 256 KiB and 8 MiB: in memory and in Redis, beside bare redis-py on the same server.

Bare redis-py is one SET and one GET on one connection: no lease, no parts, no deadline, no bound.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from typing import Any

import redis.asyncio as redis_asyncio

from _table import Row, interleave, show
from stagewire import KVBackend
from stagewire.testing import StubContext
from stagewire.testing.services import PrivateRedis
from stagewire_memory import MemoryKVOptions
from stagewire_memory.plugin import make_kv as make_memory
from stagewire_redis import RedisKVOptions
from stagewire_redis import make_kv as make_redis

SIZES = {"1 KiB": 1024, "256 KiB": 256 * 1024, "8 MiB": 8 * 1024 * 1024}
BARE = "bare redis-py"
Operation = Callable[[], Awaitable[Any]]


class Bench:
    """The subjects, connected to one private server, on one loop."""

    def __init__(self, runner: asyncio.Runner, url: str) -> None:
        self._runner = runner
        self._exits = AsyncExitStack()
        self.bare = redis_asyncio.Redis.from_url(url)
        self.stores: dict[str, KVBackend] = {
            "memory": make_memory(MemoryKVOptions(), StubContext()),
            "redis": make_redis(RedisKVOptions.model_validate({"url": url}), StubContext()),
        }

    def time(self, operation: Operation, count: int) -> float:
        return self._runner.run(timed(operation, count))

    async def open(self) -> None:
        self._exits.push_async_callback(self.bare.aclose)
        for store in self.stores.values():
            self._exits.push_async_callback(store.close)
            await store.open()

    async def close(self) -> None:
        await self._exits.aclose()

    def operations(self, size: int) -> dict[str, dict[str, Operation]]:
        """Return each subject's put and get of a value of this size; the put comes first."""
        value, key = bytes(size), f"bench-{size}"

        puts: dict[str, Operation] = {name: partial(store.put, key, value) for name, store in self.stores.items()}
        gets: dict[str, Operation] = {name: partial(take, store, key, size) for name, store in self.stores.items()}
        puts[BARE], gets[BARE] = partial(self.bare.set, f"bare-{key}", value), partial(self.bare.get, f"bare-{key}")
        return {"put": puts, "get": gets}


async def take(store: KVBackend, key: str, size: int) -> None:
    """Get a value and let go of it."""
    holder = await store.get(key)
    assert holder is not None
    with holder:
        assert len(holder) == size


async def timed(operation: Operation, count: int) -> float:
    """Return the microseconds that one operation takes, one after the other."""
    began = time.perf_counter()
    for _ in range(count):
        await operation()
    return (time.perf_counter() - began) / count * 1e6


def compare(bench: Bench, label: str, size: int, *, quick: bool) -> list[Row]:
    """Measure all subjects with one size."""
    budget = (4 if quick else 32) * 1024 * 1024
    count, rounds = max(2, min(200, budget // size)), 7 if quick else 15
    rows = []
    for action, subjects in bench.operations(size).items():
        measured = interleave({name: partial(bench.time, work, count) for name, work in subjects.items()}, rounds)
        rows += [row(f"{action} {label}", name, value, measured[BARE]) for name, value in measured.items()]
    return rows


def row(what: str, name: str, value: float, peer: float) -> Row:
    """Make a row; the peer itself has no ratio. Less is better."""
    if name == BARE:
        return Row(f"{what}, {name}", value, "us")
    return Row(f"{what}, {name}", value, "us", BARE, value / peer)


def measure(quick: bool) -> list[Row]:  # noqa: FBT001 — the same call for every benchmark
    """Return microseconds per operation, one at a time, and their ratio to bare redis-py's."""
    with ExitStack() as stack:
        server = stack.enter_context(PrivateRedis())
        runner = stack.enter_context(asyncio.Runner())
        bench = Bench(runner, server.url)
        stack.callback(lambda: runner.run(bench.close()))
        runner.run(bench.open())
        return [row for label, size in SIZES.items() for row in compare(bench, label, size, quick=quick)]


def main() -> None:
    parser = argparse.ArgumentParser(description="KV backends beside bare redis-py")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    show("KV put and get", measure(parser.parse_args().quick))


if __name__ == "__main__":
    main()
