"""RabbitMQ: our transport beside hand-written pika, aio-pika, aiormq, kombu and FastStream, on one private broker.

Every subject gives the same guarantees: publisher confirms, durable queues, persistent and mandatory messages, manual
acknowledgement. A rate counts from the first put to the last acknowledgement, both ends in one process. The broker's
CPU is read from its process. Chunks of 1 MiB and more go by claim with
ours: through Redis, and through shared memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from _processes import session_cpu
from _relay import Subject, percentile
from _relay_async import AioPika, Aiormq, FastStream
from _relay_ours import Ours
from _relay_threads import Kombu, Pika
from _table import Row, show
from stagewire import KVBackend, LeaseBackend
from stagewire.testing import StubContext
from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis
from stagewire_redis import RedisKVOptions, RedisLeaseOptions
from stagewire_redis import make_kv as make_redis_kv
from stagewire_redis import make_lease as make_redis_lease
from stagewire_shm import ShmKVOptions, ShmLeaseOptions
from stagewire_shm import make_kv as make_shm_kv
from stagewire_shm import make_lease as make_shm_lease

KIB, MIB = 1024, 1024 * 1024
HEAVY = 128 * MIB
"""Loads of more bytes are carried once, and not at all in a quick run."""

OURS, BY_REDIS, BY_SHM = "ours", "ours by redis", "ours by shm"


@dataclass(frozen=True)
class Load:
    """What is carried: so many chunks of so many bytes for each of so many requests at once."""

    label: str
    size: int
    requests: int
    chunks: int
    subjects: Sequence[str]

    @property
    def count(self) -> int:
        return self.requests * self.chunks


PEERS = (Pika.name, AioPika.name, Aiormq.name, Kombu.name, FastStream.name)
LOADS = (
    Load("1 KiB, 1 request", KIB, 1, 400, (OURS, *PEERS)),
    Load("1 KiB, 100 requests", KIB, 100, 20, (OURS, *PEERS)),
    Load("64 KiB, 1 request", 64 * KIB, 1, 200, (OURS, BY_SHM, *PEERS)),
    Load("64 KiB, 100 requests", 64 * KIB, 100, 4, (OURS, BY_SHM, *PEERS)),
    Load("1 MiB, 1 request", MIB, 1, 40, (BY_REDIS, BY_SHM, *PEERS)),
    Load("1 MiB, 100 requests", MIB, 100, 1, (BY_REDIS, BY_SHM, *PEERS)),
    Load("8 MiB, 1 request", 8 * MIB, 1, 10, (BY_REDIS, BY_SHM, *PEERS)),
    Load("8 MiB, 100 requests", 8 * MIB, 100, 1, (BY_REDIS, BY_SHM, *PEERS)),
)
PIPELINE = Load("3 stages, 1 KiB, 100 requests", KIB, 100, 10, (OURS, *PEERS))


@dataclass
class Figures:
    """What the rounds of one subject under one load took, per chunk."""

    seconds: list[float] = field(default_factory=list)
    client: list[float] = field(default_factory=list)
    broker: list[float] = field(default_factory=list)


class Bench:
    """The broker, Redis, and one open subject of each kind."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._broker = stack.enter_context(PrivateRabbitMQ())
        self._redis = stack.enter_context(PrivateRedis())
        self._shm = Path(stack.enter_context(TemporaryDirectory(dir=ShmKVOptions().directory)))

    def open(self, names: Sequence[str], stages: int) -> dict[str, Subject]:
        """Open the named subjects, each with queues of its own."""
        makers: dict[str, Callable[[], Subject]] = {
            OURS: partial(Ours, OURS),
            BY_REDIS: partial(Ours, BY_REDIS, self._redis_stores),
            BY_SHM: partial(Ours, BY_SHM, self._shm_stores),
            **{maker.name: maker for maker in (Pika, AioPika, Aiormq, Kombu, FastStream)},
        }
        opened = {}
        for name in names:
            subject = opened[name] = makers[name]()
            queues = [f"bench-{stages}-{number}-{name.replace(' ', '-')}" for number in range(stages)]
            subject.open(self._broker.url, queues)
            self._stack.callback(subject.close)
        return opened

    def _redis_stores(self) -> tuple[KVBackend, LeaseBackend]:
        options = {"url": self._redis.url}
        kv = make_redis_kv(RedisKVOptions.model_validate(options), StubContext())
        return kv, make_redis_lease(RedisLeaseOptions.model_validate(options), StubContext())

    def _shm_stores(self) -> tuple[KVBackend, LeaseBackend]:
        options = ShmKVOptions.model_validate({"directory": self._shm, "max_bytes": 2048 * MIB})
        return make_shm_kv(options, StubContext()), make_shm_lease(ShmLeaseOptions(directory=self._shm), StubContext())

    def broker_cpu(self) -> float:
        """Return the seconds of CPU that the broker has had: the processes of its session."""
        return session_cpu(self._broker.process.pid)

    def carry(self, subject: Subject, load: Load, figures: Figures) -> None:
        """Carry a load once and note what it took."""
        body = os.urandom(KIB) * (load.size // KIB)
        broker, client, began = self.broker_cpu(), time.process_time(), time.perf_counter()
        subject.transfer(body, load.requests, load.chunks)
        figures.seconds.append((time.perf_counter() - began) / load.count)
        figures.client.append((time.process_time() - client) / load.count)
        figures.broker.append((self.broker_cpu() - broker) / load.count)


def rates(bench: Bench, subjects: dict[str, Subject], load: Load, rounds: int) -> list[Row]:
    """Return the rates of ours and of the peers, and the CPU of client and broker for each chunk."""
    figures = {name: Figures() for name in load.subjects}
    for _ in range(rounds):
        for name, found in figures.items():
            bench.carry(subjects[name], load, found)
    unit, worth = ("chunks/s", 1.0) if load.size == KIB else ("MiB/s", load.size / MIB)
    rate = {name: worth / statistics.median(found.seconds) for name, found in figures.items()}
    client = {name: statistics.median(found.client) * 1e6 for name, found in figures.items()}
    broker = {name: statistics.fmean(found.broker) * 1e6 for name, found in figures.items()}
    return [
        *compared("rate", unit, rate),
        *compared("client CPU", "us/chunk", client),
        *compared("broker CPU", "us/chunk", broker),
    ]


def compared(title: str, unit: str, values: dict[str, float]) -> list[Row]:
    """Return a row for each subject; a peer's has the ratio of the first of ours to it, a further one its own."""
    first, *further = [name for name in values if name not in PEERS]
    rows = [Row(f"{title}: {first}", values[first], unit)]
    rows += [Row(f"{title}: {name}", values[name], unit, *ratio(values, name, AioPika.name)) for name in further]
    for name in PEERS:
        _, found = ratio(values, first, name)
        rows.append(Row(f"{title}: {name}", values[name], unit, f"{first} is", found))
    return rows


def ratio(values: dict[str, float], name: str, peer: str) -> tuple[str, float | None]:
    """Return the peer and the ratio to it; none where its CPU time is too small to be seen."""
    return peer, values[name] / values[peer] if values[peer] else None


def unloaded(subjects: dict[str, Subject], count: int, rounds: int) -> list[Row]:
    """Return the latency of one chunk of 1 KiB at a time."""
    found: dict[str, list[list[float]]] = {name: [] for name in (OURS, *PEERS)}
    for _ in range(rounds):
        for name, runs in found.items():
            runs.append(subjects[name].latencies(bytes(KIB), count))
    rows = []
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        values = {name: statistics.median(percentile(run, share) * 1e6 for run in runs) for name, runs in found.items()}
        rows += compared(f"latency {label}", "us", values)
    return rows


def measure(*, quick: bool) -> Iterator[tuple[str, list[Row]]]:
    """Yield the title and the figures of each part."""
    rounds = 1 if quick else 3
    with ExitStack() as stack:
        bench = Bench(stack)
        subjects = bench.open((OURS, BY_REDIS, BY_SHM, *PEERS), 1)
        yield "one at a time", unloaded(subjects, 100 if quick else 300, rounds)
        for load in LOADS:
            heavy = load.size * load.count > HEAVY
            if not (quick and heavy):
                yield load.label, rates(bench, subjects, load, 1 if heavy else rounds)
        yield PIPELINE.label, rates(bench, bench.open(PIPELINE.subjects, 3), PIPELINE, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one round, and no loads above 128 MiB")
    for title, rows in measure(quick=parser.parse_args().quick):
        show(f"RabbitMQ, {title}", rows)


if __name__ == "__main__":
    main()
