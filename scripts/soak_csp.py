"""Run the csp runtime for a while with random latencies, failures, cancels and stops: every account must balance.

    python scripts/soak_csp.py [--seconds 600] [--seed 1]

Prints a line per run and exits 1 at the first account that does not balance, or when memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import sys
import time
import tracemalloc

from stagewire import LoggingOptions, make_logger
from stagewire_csp import Capacity, CspReport, CspRuntime, FailurePolicy, RunSettings

RUN = 10.0
"""Seconds of one run."""

FAILING = 0.1
"""The share of calls that fail."""

GROWTH = 2_000_000
"""Bytes that may be in use after the last run more than after the first."""

QUIET = make_logger(LoggingOptions(level="error"), pipeline="soak")


class Chaos:
    """All three roles: each call takes a random while, and one in ten fails."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    async def produce(self) -> bytes:
        await self._work(0.002)
        return bytes(100)

    async def send(self) -> int:
        await self._work(0.001)
        return 0

    async def receive(self, _ticket: int) -> bytes:
        await self._work(0.05)
        return bytes(100)

    async def consume(self, _t: bytes, _q: bytes) -> None:
        await self._work(0.002)

    async def _work(self, seconds: float) -> None:
        await asyncio.sleep(self._dice.expovariate(1 / seconds))
        if self._dice.random() < FAILING:
            raise ConnectionError("by chance")


def make_runtime(dice: random.Random) -> CspRuntime:
    chaos = Chaos(dice)
    settings = RunSettings(
        t_ttl=dice.choice([None, 0.01, 0.1]),
        q_ttl=dice.choice([None, 0.01, 0.1]),
        reply_timeout=0.2,
        deadline=1,
        failures=FailurePolicy(backoff=0.001, longest=0.01, give_up=None),
    )
    capacity = Capacity(dice.randint(1, 8), dice.randint(1, 32), dice.randint(1, 32), dice.randint(1, 64))
    return CspRuntime(chaos, chaos, chaos, capacity=capacity, settings=settings, log=QUIET)


async def one_run(dice: random.Random) -> CspReport:
    """Run for a while, kill a third of the workers one by one, and end with a stop or a cancel."""
    runtime = make_runtime(dice)
    running = asyncio.create_task(runtime.run())
    workers = [task for task in await started() if task.get_name()[1:].isdigit()]
    for task in dice.sample(workers, len(workers) // 3):
        await asyncio.sleep(RUN / len(workers))
        task.cancel()
    if dice.choice([True, False]):
        runtime.stop("soaked")
    else:
        running.cancel()
    await asyncio.wait([running])
    await runtime.close()
    return runtime.report()


async def started() -> list[asyncio.Task[object]]:
    """Let the run start, and return all tasks in the order of their names."""
    await asyncio.sleep(0.01)
    return sorted(asyncio.all_tasks(), key=lambda task: task.get_name())


def in_use() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def soak(seconds: float, dice: random.Random) -> int:
    tracemalloc.start()
    end, number, first = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        number += 1
        report = asyncio.run(one_run(dice))
        first = first or in_use()
        print(f"run {number}: " + "; ".join(f"{label} {value}" for label, value in report.rows()), flush=True)
        if not report.balanced:
            return 1
    growth = in_use() - first
    print(f"{number} runs balanced; {growth:+,} bytes in use since the first")
    return int(growth > GROWTH)


def main() -> int:
    parser = argparse.ArgumentParser(description="Soak the csp runtime")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    return soak(arguments.seconds, random.Random(arguments.seed))  # noqa: S311 — chance, not secrets


if __name__ == "__main__":
    sys.exit(main())
