"""The ChunkAdapter over the local transport: chunks per second, latency of a chunk, cost when nothing happens.

The floor is bare threads for the same hops: caller to sending thread, sending to receiving thread, receiving thread to
caller, each a deque and a Condition. It copies, orders, bounds and retries nothing.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from _table import Row, interleave, show
from stagewire import ChunkLink
from stagewire_chunks import ChunkAdapter
from stagewire_local.transport import LocalTransport

PAYLOAD = b"a small piece of sound " * 4
STOP = ""


class Pipe(Protocol):
    """Sends chunks of requests and takes what has come."""

    def load(self, request: str) -> None: ...

    def save(self, request: str, *, final: bool) -> None: ...

    def poll(self) -> dict[str, list[Any]]: ...


class AdapterPipe:
    """Two ChunkAdapters, as two stages have them."""

    def __init__(self) -> None:
        transport = LocalTransport()
        self.sender = ChunkAdapter(transport.chunks(ChunkLink("a->b", 0, 1)), 0)
        self.receiver = ChunkAdapter(transport.chunks(ChunkLink("a->b", 0, 1)), 1, 0)

    def load(self, request: str) -> None:
        self.receiver.load_async(request)

    def save(self, request: str, *, final: bool) -> None:
        self.sender.save_async(request, PAYLOAD, final)

    def poll(self) -> dict[str, list[Any]]:
        return self.receiver.poll_ready()

    def close(self) -> None:
        self.sender.stop()
        self.receiver.stop()


class Hop:
    """One hop between two threads."""

    def __init__(self) -> None:
        self._items: deque[tuple[str, dict[str, Any]]] = deque()
        self._some = threading.Condition()

    def put(self, item: tuple[str, dict[str, Any]]) -> None:
        with self._some:
            self._items.append(item)
            self._some.notify()

    def get(self) -> tuple[str, dict[str, Any]]:
        with self._some:
            while not self._items:
                self._some.wait()
            return self._items.popleft()

    def take_all(self) -> deque[tuple[str, dict[str, Any]]]:
        with self._some:
            items, self._items = self._items, deque()
        return items


class BarePipe:
    """Bare threads."""

    def __init__(self) -> None:
        self._saved, self._sent, self._received = Hop(), Hop(), Hop()
        self._threads = [
            threading.Thread(target=self._carry, args=hops, daemon=True)
            for hops in ((self._saved, self._sent), (self._sent, self._received))
        ]
        for thread in self._threads:
            thread.start()

    def load(self, request: str) -> None:
        """Nothing is registered: whatever comes is carried."""

    def save(self, request: str, *, final: bool) -> None:
        self._saved.put((request, {"data": PAYLOAD, "finished": final}))

    def poll(self) -> dict[str, list[Any]]:
        ready: dict[str, list[Any]] = {}
        for request, message in self._received.take_all():
            ready.setdefault(request, []).append(message)
        return ready

    @staticmethod
    def _carry(source: Hop, target: Hop) -> None:
        while (item := source.get())[0] != STOP:
            target.put(item)
        target.put(item)

    def close(self) -> None:
        self._saved.put((STOP, {}))
        for thread in self._threads:
            thread.join()


MAKERS: dict[str, Callable[[], Any]] = {"ours": AdapterPipe, "bare": BarePipe}


@contextmanager
def opened(make: Callable[[], Any]) -> Iterator[Any]:
    pipe = make()
    try:
        yield pipe
    finally:
        pipe.close()


def rate(make: Callable[[], Any], requests: int, chunks: int) -> float:
    """Return chunks per second of ``requests`` at once, from save to poll."""
    with opened(make) as pipe:
        names = [f"r{number}" for number in range(requests)]
        for name in names:
            pipe.load(name)
        began, got = time.perf_counter(), 0
        for number in range(chunks):
            for name in names:
                pipe.save(name, final=number == chunks - 1)
            got += sum(map(len, pipe.poll().values()))
        while got < requests * chunks:
            got += sum(map(len, pipe.poll().values()))
            time.sleep(0.0002)
        return requests * chunks / (time.perf_counter() - began)


def latencies(make: Callable[[], Any], count: int) -> list[float]:
    """Return seconds from save to poll, one chunk at a time."""
    found: list[float] = []
    with opened(make) as pipe:
        pipe.load("r")
        for number in range(count):
            began = time.perf_counter()
            pipe.save("r", final=number == count - 1)
            while not pipe.poll():
                time.sleep(0.00002)
            found.append(time.perf_counter() - began)
    return found


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class BlockingTransport:
    """Blocks every put for a second."""

    def put(self, _key: object, _message: object) -> None:
        time.sleep(1)

    def get(self, _key: object) -> None:
        return None


def save_while_blocked(count: int) -> float:
    """Return the 99th percentile of `save_async` in microseconds while the transport blocks."""
    adapter = ChunkAdapter(BlockingTransport(), 0)
    adapter.save_async("r", PAYLOAD, is_final=False)
    time.sleep(0.05)
    found = []
    for number in range(count):
        began = time.perf_counter()
        adapter.save_async(f"r{number}", PAYLOAD, is_final=False)
        found.append(time.perf_counter() - began)
    adapter.stop()
    return percentile(found, 0.99) * 1e6


def idle_cpu(seconds: float) -> float:
    """Return which share of a core ten registered and silent requests cost, in percent."""
    with opened(AdapterPipe) as pipe:
        for number in range(10):
            pipe.load(f"r{number}")
        time.sleep(0.2)
        began = time.process_time()
        time.sleep(seconds)
        return (time.process_time() - began) / seconds * 100


def _compared(name: str, unit: str, ours: float, bare: float) -> list[Row]:
    return [
        Row(f"{name}: ChunkAdapter", ours, unit),
        Row(f"{name}: bare threads", bare, unit, "ChunkAdapter is", ours / bare),
    ]


def rates(requests: int, chunks: int, rounds: int) -> list[Row]:
    """Return chunks per second, and the CPU time of one: other programs on the machine disturb that much less."""
    spent: dict[str, list[float]] = {name: [] for name in MAKERS}

    def subject(name: str) -> float:
        began = time.process_time()
        found = rate(MAKERS[name], requests, chunks)
        spent[name].append((time.process_time() - began) / (requests * chunks) * 1e6)
        return found

    medians = interleave({name: partial(subject, name) for name in MAKERS}, rounds)
    cpu = {name: statistics.median(values) for name, values in spent.items()}
    title = f"{requests} request{'s' if requests > 1 else ''}"
    return [
        *_compared(title, "chunks/s", medians["ours"], medians["bare"]),
        *_compared(f"{title}, CPU", "µs/chunk", cpu["ours"], cpu["bare"]),
    ]


def measure(*, quick: bool) -> list[Row]:
    """Return rates, latencies and idle cost."""
    rounds = 5 if quick else 15
    rows = [row for requests, chunks in ((1, 4_000), (32, 200)) for row in rates(requests, chunks, rounds)]
    found: dict[str, list[list[float]]] = {name: [] for name in MAKERS}
    for _ in range(rounds):
        for name, make in MAKERS.items():
            found[name].append(latencies(make, 300))
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        values = {name: statistics.median(percentile(run, share) for run in runs) for name, runs in found.items()}
        rows += _compared(f"latency {label}", "µs", values["ours"] * 1e6, values["bare"] * 1e6)
    rows.append(Row("save_async p99 while the transport blocks", save_while_blocked(2_000), "µs"))
    rows.append(Row("idle CPU, 10 silent requests", idle_cpu(2 if quick else 4), "% of a core"))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    show("ChunkAdapter over the local transport", measure(quick=parser.parse_args().quick))
