"""Shared memory: put, get and delete of 64 KiB to 32 MiB beside Redis and beside bare shared memory.

A round trip puts a value, gets it, touches each of its pages and deletes it. The peers: our own Redis backend on a
private server; a ``multiprocessing.shared_memory`` block that is made, attached, read and removed for each value; and
a copy into a map that is there already, which is what the bytes alone cost.
"""

from __future__ import annotations

import argparse
import asyncio
import mmap
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from tempfile import TemporaryDirectory

from _table import Row, interleave, show
from stagewire import KVBackend
from stagewire.testing import StubContext
from stagewire.testing.services import PrivateRedis
from stagewire_redis import RedisKVOptions
from stagewire_redis import make_kv as make_redis
from stagewire_shm import ShmKVOptions
from stagewire_shm import make_kv as make_shm

MIB = 1024 * 1024
SIZES = {"64 KiB": MIB // 16, "1 MiB": MIB, "8 MiB": 8 * MIB, "32 MiB": 32 * MIB}
OURS, REDIS, BLOCK, COPY = "shm", "redis", "shared_memory", "bare copy"
RoundTrip = Callable[[bytes], Awaitable[None]]


def touch(view: memoryview) -> None:
    """Read a byte of each page."""
    sum(view[:: mmap.PAGESIZE])


async def through_store(store: KVBackend, value: bytes) -> None:
    await store.put("bench", value)
    holder = await store.get("bench")
    assert holder is not None
    with holder:
        touch(holder.data)
    await store.delete("bench")


async def through_block(value: bytes) -> None:
    written = SharedMemory(create=True, size=len(value))
    assert written.buf is not None
    written.buf[: len(value)] = value
    read = SharedMemory(written.name)
    assert read.buf is not None
    touch(read.buf[: len(value)].toreadonly())
    read.close()
    written.close()
    written.unlink()


async def through_map(target: mmap.mmap, value: bytes) -> None:
    target[: len(value)] = value
    with memoryview(target) as view, view[: len(value)] as part:
        touch(part)


async def timed(round_trip: RoundTrip, value: bytes, count: int) -> float:
    """Return the microseconds that one round trip takes, one after the other."""
    began = time.perf_counter()
    for _ in range(count):
        await round_trip(value)
    return (time.perf_counter() - began) / count * 1e6


def compare(runner: asyncio.Runner, subjects: dict[str, RoundTrip], label: str, *, quick: bool) -> list[Row]:
    """Measure all subjects with one size; ours has its ratio to each of the others. Less is better."""
    value = bytes(SIZES[label])
    count, rounds = max(2, min(50, (8 if quick else 64) * MIB // len(value))), 5 if quick else 15

    def run(work: RoundTrip) -> float:
        return runner.run(timed(work, value, count))

    measured = interleave({name: partial(run, work) for name, work in subjects.items()}, rounds)
    rows = [Row(f"{label}, {name}", value, "us") for name, value in measured.items() if name != OURS]
    ours = measured.pop(OURS)
    return rows + [Row(f"{label}, {OURS}", ours, "us", name, ours / value) for name, value in measured.items()]


def measure(quick: bool) -> list[Row]:  # noqa: FBT001 — the same call for every benchmark
    """Return microseconds per round trip, one at a time, and the ratios of ours to its peers."""
    with ExitStack() as stack:
        server = stack.enter_context(PrivateRedis())
        runner = stack.enter_context(asyncio.Runner())
        directory = Path(stack.enter_context(TemporaryDirectory(dir=ShmKVOptions().directory)))
        shm = make_shm(ShmKVOptions(directory=directory), StubContext())
        redis = make_redis(RedisKVOptions.model_validate({"url": server.url}), StubContext())
        exits = AsyncExitStack()
        stack.callback(lambda: runner.run(exits.aclose()))
        for store in (shm, redis):
            exits.push_async_callback(store.close)
            runner.run(store.open())
        target = stack.enter_context(mmap.mmap(-1, max(SIZES.values())))
        subjects: dict[str, RoundTrip] = {
            REDIS: partial(through_store, redis),
            BLOCK: through_block,
            COPY: partial(through_map, target),
            OURS: partial(through_store, shm),
        }
        return [row for label in SIZES for row in compare(runner, subjects, label, quick=quick)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    show("Shared memory: put, get and delete", measure(parser.parse_args().quick))


if __name__ == "__main__":
    main()
