"""Our transport as a pipeline uses it: the chunk face from threads, large payloads by claim where there is a store."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from _relay import Loop, ThreadSubject
from stagewire import ChunkKey, ChunkLink, ChunkMessage, ChunkTransport, KVBackend, LeaseBackend, Transport
from stagewire.claims import ClaimCheck, ClaimedTransport
from stagewire.testing import StubContext
from stagewire_rabbitmq import RabbitMQOptions, make_transport

Stores = Callable[[], tuple[KVBackend, LeaseBackend]]
TAKEN = 64
"""Chunks of one request that are taken at once."""


class Reader:
    """Takes the chunks of one link as they come, request by request and in order."""

    def __init__(self, face: ChunkTransport, stage: str) -> None:
        self._face = face
        self._stage = stage
        self._next: dict[str, int] = defaultdict(int)
        self._known: set[str] = set()
        self._woken: set[str] = set()
        self._lock = threading.Lock()
        self._some = threading.Event()
        face.set_wakeup(self._wake)  # type: ignore[attr-defined] # optional in the contract, and it has it

    def _wake(self, *requests: str) -> None:
        with self._lock:
            self._woken.update(requests or self._known)
        self._some.set()

    def expect(self, requests: Sequence[str]) -> None:
        """Begin to read requests."""
        with self._lock:
            self._known.update(requests)
            self._woken.update(requests)
        self._some.set()

    def take(self, timeout: float) -> list[tuple[str, int, ChunkMessage]]:
        """Wait for chunks, and return those that are there."""
        if not self._some.wait(timeout):
            return []
        self._some.clear()
        with self._lock:
            woken, self._woken = self._woken, set()
        return [taken for request in woken for taken in self._take_of(request)]

    def _take_of(self, request: str) -> list[tuple[str, int, ChunkMessage]]:
        taken = []
        while messages := self._get(ChunkKey(request, self._stage, self._next[request])):
            for message in messages:
                taken.append((request, self._next[request], message))
                self._next[request] += 1
            if messages[-1]["finished"]:
                self._next[request] = 0
        return taken

    def _get(self, key: ChunkKey) -> Sequence[ChunkMessage]:
        many = getattr(self._face, "get_many", None)
        if many is not None:
            return list(many(key, TAKEN))
        message = self._face.get(key)
        return [] if message is None else [message]


class Ours(ThreadSubject):
    """The RabbitMQ transport, one for each end of a link. What several requests have to send is put together."""

    def __init__(self, name: str, stores: Stores | None = None) -> None:
        super().__init__()
        self.name = name
        self._stores = stores
        self._exits = ExitStack()
        self._sent: dict[str, int] = defaultdict(int)

    def open(self, url: str, queues: Sequence[str]) -> None:
        self._loop = Loop()
        self._exits.callback(self._loop.close)
        self._queues = list(queues)
        self._out = [self._face(url, queue, "send") for queue in queues]
        self._in = [Reader(self._face(url, queue, "receive"), queue) for queue in queues]
        self.start(url, queues)

    def _face(self, url: str, queue: str, role: Any) -> ChunkTransport:
        options = RabbitMQOptions.model_validate({"url": url, "prefix": "ours-" + self.name.replace(" ", "-")})
        transport = self._claimed(make_transport(options, StubContext()))
        self._loop.run(transport.open())
        self._exits.callback(self._close, transport)
        return transport.chunks(ChunkLink(queue, "source", queue, role=role))

    def _close(self, opened: Transport | KVBackend | LeaseBackend) -> None:
        self._loop.run(opened.close())

    def _claimed(self, transport: Transport) -> Transport:
        if self._stores is None:
            return transport
        kv, lease = self._stores()
        stores: tuple[KVBackend | LeaseBackend, ...] = (kv, lease)
        for store in stores:
            self._loop.run(store.open())
            self._exits.callback(self._close, store)
        return ClaimedTransport(transport, ClaimCheck(kv, lease, clock=StubContext().clock))

    def transfer(self, body: bytes, requests: int, chunks: int) -> None:
        names = [f"r{number}" for number in range(requests)]
        self._begin(names, requests * chunks)
        for chunk in range(chunks):
            message = ChunkMessage(data=body, finished=chunk == chunks - 1)
            put(self._out[0], [(ChunkKey(name, self._queues[0], chunk), message) for name in names])
        self.arrivals.wait()

    def latencies(self, body: bytes, count: int) -> list[float]:
        self._begin(["r"], 1)
        self._last = count - 1
        return super().latencies(body, count)

    def _begin(self, names: Sequence[str], count: int) -> None:
        self.arrivals.expect(count)
        for reader in self._in:
            reader.expect(names)

    def publish(self, body: bytes, request: str, chunk: int) -> None:
        message = ChunkMessage(data=body, finished=chunk == self._last)
        self._out[0].put(ChunkKey(request, self._queues[0], chunk), message)

    def consume(self, _url: str, queue: str, following: str | None, ready: threading.Event) -> None:
        reader = self._in[self._queues.index(queue)]
        onward = None if following is None else self._out[self._queues.index(following)]
        ready.set()
        while not self.stopping.is_set():
            taken = reader.take(0.1)
            if onward is not None:
                put(onward, [(ChunkKey(name, str(following), chunk), message) for name, chunk, message in taken])
            elif taken:
                self.arrivals.arrived(len(taken))

    def close(self) -> None:
        self.stop()
        self._exits.close()


def put(face: ChunkTransport, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> None:
    """Put chunks, all in one go where the transport can, and see to it that all were confirmed."""
    together = getattr(face, "put_many", None)
    if together is None or len(items) == 1:
        for key, message in items:
            face.put(key, message)
        return
    for failure in together(items):
        if failure is not None:
            raise failure
