"""What every subject of the RabbitMQ benchmark does: carry the chunks of some requests over one or more queues.

A chunk has been carried when its put was confirmed, the last consumer had it and every message of it was acknowledged
by hand. All queues are durable, all messages persistent and mandatory. With more than one queue each consumer puts what
it gets into the next queue, waits for the confirm and then acknowledges: a pipeline of stages.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
PREFETCH = 256
PATIENCE = 120.0
"""Seconds after which chunks that have not come are an error."""


class Loop:
    """An event loop in a thread, which runs while nothing is measured, too, so that heartbeats are answered."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Subject(ABC):
    """One way to carry chunks. Used from one thread."""

    name: str

    @abstractmethod
    def open(self, url: str, queues: Sequence[str]) -> None:
        """Connect, declare the queues and consume them."""

    @abstractmethod
    def transfer(self, body: bytes, requests: int, chunks: int) -> None:
        """Carry ``chunks`` of each request, all requests at once, the chunks of one after the other."""

    @abstractmethod
    def latencies(self, body: bytes, count: int) -> list[float]:
        """Return the seconds from the beginning of a put to the arrival, one chunk at a time."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""


class Arrivals:
    """Counts what arrives in a consumer's thread."""

    def __init__(self) -> None:
        self._left = 0
        self._all = threading.Event()
        self._lock = threading.Lock()

    def expect(self, count: int) -> None:
        with self._lock:
            self._left = count
            self._all.clear()

    def arrived(self, count: int = 1) -> None:
        with self._lock:
            self._left -= count
            if self._left <= 0:
                self._all.set()

    def wait(self) -> None:
        if not self._all.wait(PATIENCE):
            raise TimeoutError(f"{self._left} chunks did not come")


class ThreadSubject(Subject):
    """A subject that publishes in the caller's thread, one chunk after the other, and consumes in threads."""

    def __init__(self) -> None:
        self.arrivals = Arrivals()
        self.stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    @abstractmethod
    def publish(self, body: bytes, request: str, chunk: int) -> None:
        """Publish one chunk to the first queue and wait for its confirm."""

    @abstractmethod
    def consume(self, url: str, queue: str, following: str | None, ready: threading.Event) -> None:
        """Consume one queue until ``stopping`` is set: hand on or count, then acknowledge."""

    def start(self, url: str, queues: Sequence[str]) -> None:
        """Start a consuming thread for each queue."""
        for queue, following in zip(queues, [*queues[1:], None], strict=True):
            ready = threading.Event()
            thread = threading.Thread(target=self.consume, args=(url, queue, following, ready), daemon=True)
            thread.start()
            self._threads.append(thread)
            if not ready.wait(PATIENCE):
                raise TimeoutError(f"{self.name} does not consume {queue}")

    def transfer(self, body: bytes, requests: int, chunks: int) -> None:
        self.arrivals.expect(requests * chunks)
        for chunk in range(chunks):
            for request in range(requests):
                self.publish(body, f"r{request}", chunk)
        self.arrivals.wait()

    def latencies(self, body: bytes, count: int) -> list[float]:
        found = []
        for chunk in range(count):
            self.arrivals.expect(1)
            began = time.perf_counter()
            self.publish(body, "r", chunk)
            self.arrivals.wait()
            found.append(time.perf_counter() - began)
        return found

    def stop(self) -> None:
        """Let the consuming threads end."""
        self.stopping.set()
        for thread in self._threads:
            thread.join(10)


class LoopSubject(Subject):
    """A subject on an event loop: a task for each request, each waiting for its own confirms."""

    def __init__(self) -> None:
        self._loop = Loop()
        self._left = 0
        self._all = asyncio.Event()

    @abstractmethod
    async def connect(self, url: str, queues: Sequence[str]) -> None:
        """Connect, declare and consume; the consumers hand on or call `arrived`, then acknowledge."""

    @abstractmethod
    async def publish(self, body: bytes, request: str, chunk: int) -> None:
        """Publish one chunk to the first queue and wait for its confirm."""

    @abstractmethod
    async def disconnect(self) -> None:
        """Close the connections."""

    def open(self, url: str, queues: Sequence[str]) -> None:
        self._loop.run(self.connect(url, queues))

    def close(self) -> None:
        self._loop.run(self.disconnect())
        self._loop.close()

    def arrived(self) -> None:
        """Count a chunk."""
        self._left -= 1
        if self._left <= 0:
            self._all.set()

    def _expect(self, count: int) -> None:
        self._left = count
        self._all.clear()

    async def _wait(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._all.wait()

    def transfer(self, body: bytes, requests: int, chunks: int) -> None:
        async def stream(request: str) -> None:
            for chunk in range(chunks):
                await self.publish(body, request, chunk)

        async def main() -> None:
            self._expect(requests * chunks)
            async with asyncio.TaskGroup() as group:
                for request in range(requests):
                    group.create_task(stream(f"r{request}"))
            await self._wait()

        self._loop.run(main())

    def latencies(self, body: bytes, count: int) -> list[float]:
        async def main() -> list[float]:
            found = []
            for chunk in range(count):
                self._expect(1)
                began = time.perf_counter()
                publishing = asyncio.ensure_future(self.publish(body, "r", chunk))
                await self._wait()
                found.append(time.perf_counter() - began)
                await publishing
            return found

        return self._loop.run(main())


def headers(request: str, chunk: int) -> dict[str, Any]:
    """Return what tells a chunk from the others."""
    return {"request": request, "chunk": chunk}


def percentile(values: Sequence[float], share: float) -> float:
    return statistics.quantiles(values, n=100)[round(share * 100) - 1]
