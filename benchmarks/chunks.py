"""The ChunkAdapter over the local transport: chunks per second, latency of a chunk, cost when nothing happens.

The floor is bare threads for the same hops: a deque and a Condition to the sending thread, a dictionary behind a lock
as the transport, a receiving thread, a list behind a lock for the caller. It copies, bounds and retries nothing.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from _table import Row, interleave, show
from stagewire import ChunkLink
from stagewire_chunks import ChunkAdapter
from stagewire_local.transport import LocalTransport

PAYLOAD = b"a small piece of sound " * 4


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


class BarePipe:
    """Bare threads."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, int, Any]] = deque()
        self._some = threading.Condition()
        self._store: dict[tuple[str, int], Any] = {}
        self._arrived = threading.Condition()
        self._ready: dict[str, list[Any]] = {}
        self._ids: dict[str, int] = {}
        self._expected: dict[str, int] = {}
        self._running = True
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def load(self, request: str) -> None:
        with self._arrived:
            self._expected[request] = 0

    def save(self, request: str, *, final: bool) -> None:
        number = self._ids.get(request, 0)
        self._ids[request] = number + 1
        with self._some:
            self._waiting.append((request, number, {"data": PAYLOAD, "finished": final}))
            self._some.notify()

    def poll(self) -> dict[str, list[Any]]:
        with self._arrived:
            ready, self._ready = self._ready, {}
        return ready

    def _send(self) -> None:
        while self._running:
            with self._some:
                while not self._waiting and self._running:
                    self._some.wait(0.1)
                item = self._waiting.popleft() if self._waiting else None
            if item is not None:
                with self._arrived:
                    self._store[item[0], item[1]] = item[2]
                    self._arrived.notify()

    def _receive(self) -> None:
        while self._running:
            with self._arrived:
                found = [key for key in self._expected.items() if key in self._store]
                if not found:
                    self._arrived.wait(0.01)
                for request, number in found:
                    message = self._store.pop((request, number))
                    self._ready.setdefault(request, []).append(message)
                    self._expected[request] = number + 1
                    if message["finished"]:
                        del self._expected[request]

    def close(self) -> None:
        self._running = False
        for thread in self._threads:
            thread.join()


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


def measure(*, quick: bool) -> list[Row]:
    """Return rates, latencies and idle cost."""
    rounds, makers = (3 if quick else 7), {"ours": AdapterPipe, "bare": BarePipe}
    rows: list[Row] = []
    for requests, chunks in ((1, 4_000), (32, 200)):
        subjects = {name: (lambda m=make, r=requests, c=chunks: rate(m, r, c)) for name, make in makers.items()}
        medians = interleave(subjects, rounds)
        rows += _compared(f"{requests} requests", "chunks/s", medians["ours"], medians["bare"])
    found = {name: [latencies(make, 300) for _ in range(rounds)] for name, make in makers.items()}
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        values = {name: statistics.median(percentile(run, share) for run in runs) for name, runs in found.items()}
        rows += _compared(f"latency {label}", "µs", values["ours"] * 1e6, values["bare"] * 1e6)
    rows.append(Row("save_async p99 while the transport blocks", save_while_blocked(200), "µs"))
    rows.append(Row("idle CPU, 10 silent requests", idle_cpu(2 if quick else 5), "% of a core"))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    show("ChunkAdapter over the local transport", measure(quick=parser.parse_args().quick))
