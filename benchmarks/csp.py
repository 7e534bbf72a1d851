"""The csp inventory: pairs per second with many waiting consumers, memory per envelope, a million that expire at once.

Every subject does the same: some consumers wait for pairs; a producer puts a T and a Q, one pair at a time (paced) or
64 in a row (burst), and goes on when they were consumed. Three peers: the same design with a Condition and
``notify_all``, anyio's capacity limiters and memory streams, and two bare queues, which neither pair, expire nor count.

Pairs are counted per second of the process's CPU time: nothing here waits, and on a shared machine it says more.

How far notify_all falls behind depends on how many wake up for one pair. Paced that is everybody who waits. In a burst
they all wake once for the whole of it, since who was notified is not notified again: 512 waiters and a burst of 64 are
8 for each pair, so no design can be a hundred times as fast there; 10,000 waiters are 156 for each pair.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Protocol

import anyio

import _notify_all
from _table import Row, interleave, show
from stagewire_csp import Inventory, ResourceEnvelope

TTL = 60.0
BURST = 64
WAITING = (1, 8, 64, 512, 10_000)
OURS = "stagewire_csp"


class Subject(Protocol):
    """Something that pairs. ``slots`` bounds each side."""

    def __init__(self, slots: int) -> None: ...

    async def put_pair(self) -> None: ...

    async def consume_pair(self) -> None: ...


class Ours:
    def __init__(self, slots: int) -> None:
        self._inventory = Inventory(slots, slots)

    async def put_pair(self) -> None:
        inventory = self._inventory
        await inventory.put_t(await ResourceEnvelope.create_with_slot("t", inventory.t_slots, ttl=TTL))
        await inventory.put_q(await ResourceEnvelope.create_with_slot("q", inventory.q_slots, ttl=TTL))

    async def consume_pair(self) -> None:
        async with self._inventory.claim_pair():
            pass


class NotifyAll:
    def __init__(self, slots: int) -> None:
        self._inventory = _notify_all.Inventory(slots)

    async def put_pair(self) -> None:
        inventory, envelope = self._inventory, _notify_all.Envelope
        await inventory.put_t(await envelope.create_with_slot("t", inventory.t_slots, TTL))
        await inventory.put_q(await envelope.create_with_slot("q", inventory.q_slots, TTL))

    async def consume_pair(self) -> None:
        async with self._inventory.claim_pair():
            pass


class AnyioStreams:
    def __init__(self, slots: int) -> None:
        self._slots = (anyio.CapacityLimiter(slots), anyio.CapacityLimiter(slots))
        self._streams = [anyio.create_memory_object_stream[object](slots) for _ in range(2)]

    async def put_pair(self) -> None:
        for slots, (sender, _) in zip(self._slots, self._streams, strict=True):
            resource = object()
            await slots.acquire_on_behalf_of(resource)
            await sender.send(resource)

    async def consume_pair(self) -> None:
        taken = [await receiver.receive() for _, receiver in self._streams]
        for slots, resource in zip(self._slots, taken, strict=True):
            slots.release_on_behalf_of(resource)


class BareQueues:
    def __init__(self, slots: int) -> None:
        self._t = asyncio.Queue[str](slots)
        self._q = asyncio.Queue[str](slots)

    async def put_pair(self) -> None:
        await self._t.put("t")
        await self._q.put("q")

    async def consume_pair(self) -> None:
        await self._t.get()
        await self._q.get()


SUBJECTS: dict[str, type[Subject]] = {
    OURS: Ours,
    "Condition + notify_all": NotifyAll,
    "anyio limiters + streams": AnyioStreams,
    "bare asyncio.Queue pair": BareQueues,
}


class Floor:
    """Some consumers that wait for pairs, and how many pairs they have had."""

    def __init__(self, subject: Subject, waiting: int) -> None:
        self._subject = subject
        self._done = 0
        self._tasks = [asyncio.create_task(self._consume()) for _ in range(waiting)]

    async def _consume(self) -> None:
        while True:
            await self._subject.consume_pair()
            self._done += 1

    async def run(self, burst: int, seconds: float) -> float:
        """Return pairs per second of CPU time."""
        await self._bursts(burst, 1)  # by now all consumers wait
        began, pairs = time.process_time(), 0
        while (elapsed := time.process_time() - began) < seconds:
            await self._bursts(burst, 4)
            pairs += burst * 4
        return pairs / elapsed

    async def _bursts(self, burst: int, count: int) -> None:
        for _ in range(count):
            target = self._done + burst
            for _ in range(burst):
                await self._subject.put_pair()
            while self._done < target:  # noqa: ASYNC110 — an event would be part of what is measured
                await asyncio.sleep(0)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def pairs_per_second(make: type[Subject], waiting: int, burst: int, seconds: float) -> float:
    async def main() -> float:
        floor = Floor(make(waiting + BURST), waiting)
        await asyncio.sleep(0)
        try:
            return await floor.run(burst, seconds)
        finally:
            await floor.close()

    return asyncio.run(main())


def throughput(mode: str, burst: int, *, quick: bool) -> list[Row]:
    seconds, rounds = (0.03, 3) if quick else (0.1, 7)
    rows = []
    for waiting in WAITING:
        subjects = {name: partial(pairs_per_second, make, waiting, burst, seconds) for name, make in SUBJECTS.items()}
        medians = interleave(subjects, rounds)
        for name, value in medians.items():
            compared = (f"{OURS} is", medians[OURS] / value) if name != OURS else (None, None)
            rows.append(Row(f"{mode}, {waiting:,} waiting: {name}", value, "pairs/s", *compared))
    return [*rows, _flatness(mode, burst, seconds, rounds)]


def _flatness(mode: str, burst: int, seconds: float, rounds: int) -> Row:
    """Compare those in which every pair finds a waiting consumer: in the others most are taken without a wait."""
    waiting = [count for count in WAITING if count >= burst]
    ours = interleave({f"{each}": partial(pairs_per_second, Ours, each, burst, seconds) for each in waiting}, rounds)
    slowest, fastest = min(ours.values()), max(ours.values())
    name = f"{mode}, slowest of {min(waiting):,} to {max(waiting):,} waiting: {OURS}"
    return Row(name, slowest, "pairs/s", "its fastest", slowest / fastest)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def longest_block(count: int, ttl: Callable[[], float]) -> float:
    """Return the longest that the loop was held up, in ms, while ``count`` T expire at once and a claim waits."""

    async def main() -> float:
        clock = Clock()
        inventory = Inventory(count + 1, 1, clock=clock)
        for number in range(count):
            await inventory.put_t(await ResourceEnvelope.create_with_slot(number, inventory.t_slots, ttl=ttl()))
        clock.now = 1_000.0

        async def claim() -> None:
            async with inventory.claim_pair():
                pass

        claiming, longest = asyncio.create_task(claim()), 0.0
        await asyncio.sleep(0)
        while inventory.depths[0]:
            began = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - began)
        await inventory.put_t(await ResourceEnvelope.create_with_slot("t", inventory.t_slots))
        await inventory.put_q(await ResourceEnvelope.create_with_slot("q", inventory.q_slots))
        await claiming
        return longest * 1_000

    return asyncio.run(main())


def bytes_per_envelope(count: int, ttl: Callable[[], float]) -> float:
    """Return what an envelope in stock costs beyond its payload: links, slot, deadline and all."""

    async def main() -> float:
        inventory, payload = Inventory(count, 1), object()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(count):
            await inventory.put_t(await ResourceEnvelope.create_with_slot(payload, inventory.t_slots, ttl=ttl()))
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return used / count

    return asyncio.run(main())


def measure(*, quick: bool) -> list[Row]:
    """Return pairs per second, the longest block, and the cost of an envelope."""
    count = 100_000 if quick else 1_000_000
    mixed = partial(random.Random(1).choice, [float(seconds) for seconds in range(1, 100)])
    rows = [*throughput("paced", 1, quick=quick), *throughput(f"burst of {BURST}", BURST, quick=quick)]
    for label, ttl in (("one ttl", lambda: TTL), ("many ttls", mixed)):
        rows.append(Row(f"{count:,} expire at once, {label}: longest block", longest_block(count, ttl), "ms"))
    for label, ttl in (("one ttl", lambda: TTL), ("many ttls", mixed)):
        rows.append(Row(f"an envelope in stock, {label}", bytes_per_envelope(100_000, ttl), "bytes"))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    show("CSP inventory", measure(quick=parser.parse_args().quick))
