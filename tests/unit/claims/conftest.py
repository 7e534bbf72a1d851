"""A KV backend and leases that do what a test says, in virtual time; and a transport with a claim-check."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stagewire import Buffer, ChunkKey, ChunkLink, Holder, KVError, Lease
from stagewire.claims import ClaimCheck, ClaimedTransport
from stagewire_local.transport import LocalTransport
from stagewire_memory.kv import MemoryKV
from stagewire_memory.lease import MemoryLease
from stagewire_memory.options import MemoryKVOptions
from stagewire_memory.table import LeaseTable

LARGE = b"x" * 5_000
LINK = ChunkLink("a->b", "a", "b")


class ScriptedKV:
    """Stores keys after ``put_delay``; fails, or takes effect although it failed, as told. Remembers the deletes."""

    reference_threshold = 1

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.put_delay = 0.0
        self.put_failure: Exception | None = None
        self.late_effect: float | None = None
        self.delete_failures = 0
        self.delete_hangs = False
        self.deletes: list[tuple[float, str, bool]] = []
        self.on_put: Callable[[str], None] = lambda _key: None

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        self.on_put(key)
        if self.late_effect is not None:
            asyncio.get_running_loop().call_later(self.late_effect, self.values.__setitem__, key, bytes(value))
        await asyncio.sleep(self.put_delay)
        if self.put_failure is not None:
            raise self.put_failure
        self.values[key] = bytes(value)

    async def get(self, key: str) -> Holder | None:
        raise NotImplementedError

    async def delete(self, key: str) -> bool:
        found = key in self.values
        self.deletes.append((asyncio.get_running_loop().time(), key, found))
        if self.delete_hangs:
            await asyncio.sleep(1_000)
        if self.delete_failures:
            self.delete_failures -= 1
            raise KVError("out of reach")
        self.values.pop(key, None)
        return found

    async def exists(self, key: str) -> bool:
        return key in self.values

    async def keys(self, prefix: str = "") -> list[str]:
        return [key for key in self.values if key.startswith(prefix)]

    async def close(self) -> None:
        """There is nothing to close."""


class OneLease:
    """Says whether the lease has ended."""

    def __init__(self) -> None:
        self.ended = False

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def grant(self, ttl: float) -> Lease:
        return Lease("lease-1", 1, ttl, asyncio.get_running_loop().time() + ttl)

    async def keepalive(self, lease: Lease) -> Lease:
        return lease

    async def attach(self, lease: Lease, key: str) -> None:
        raise NotImplementedError

    async def revoke(self, lease: Lease) -> None:
        self.ended = True

    async def alive(self, lease: Lease) -> bool:
        return not self.ended

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def kv() -> ScriptedKV:
    return ScriptedKV()


@pytest.fixture
def leases() -> OneLease:
    return OneLease()


class World:
    """A transport with a claim-check, and what is beneath it."""

    def __init__(self, ttl: float = 60) -> None:
        self.now = 0.0
        table = LeaseTable(lambda: self.now)
        self.kv = MemoryKV(MemoryKVOptions(), table)
        self.leases = MemoryLease(table)
        self.check = ClaimCheck(self.kv, self.leases, clock=lambda: self.now, ttl=ttl, threshold=1_000, grace=0.05)
        self.inner = LocalTransport(clock=lambda: self.now)
        self.transport = ClaimedTransport(self.inner, self.check)


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[World]:
    world = World(**options)
    await world.transport.open()
    try:
        yield world
    finally:
        await world.transport.close()


async def eventually_got(chunks: Any, key: ChunkKey) -> Any:
    async with asyncio.timeout(5):
        while True:
            message = await asyncio.to_thread(chunks.get, key)
            if message is not None:
                return message
            await asyncio.sleep(0.001)
