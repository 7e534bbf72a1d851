"""The in-memory backends keep the promises of every KV and lease backend, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from stagewire.testing import run_virtual
from stagewire.testing.context import StubContext
from stagewire.testing.suites import KVBackendSuite, LeaseBackendSuite, StoreHarness, Stores
from stagewire_memory import MemoryKVOptions, MemoryLeaseOptions
from stagewire_memory.plugin import make_kv, make_lease

T = TypeVar("T")


class InMemory(StoreHarness):
    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return run_virtual(main)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def stores(self) -> AbstractAsyncContextManager[Stores]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Stores]:
        context = StubContext(clock=asyncio.get_running_loop().time)
        stores = Stores(make_kv(MemoryKVOptions(), context), make_lease(MemoryLeaseOptions(), context))
        await stores.kv.open()
        await stores.lease.open()
        try:
            yield stores
        finally:
            await stores.lease.close()
            await stores.kv.close()


class TestMemoryKV(InMemory, KVBackendSuite):
    pass


class TestMemoryLease(InMemory, LeaseBackendSuite):
    pass
