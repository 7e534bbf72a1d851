"""The shared-memory backends keep the promises of every KV and lease backend, on a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from stagewire.testing import StubContext
from stagewire.testing.context import ManualClock
from stagewire.testing.suites import KVBackendSuite, LeaseBackendSuite, StoreHarness, Stores
from stagewire_shm import ShmKVOptions, ShmLeaseOptions, make_kv, make_lease


class InSharedMemory(StoreHarness):
    place: Path

    @pytest.fixture(autouse=True)
    def _place(self, shm: Path) -> None:
        self.place = shm

    def stores(self) -> AbstractAsyncContextManager[Stores]:
        self.clock = ManualClock()
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Stores]:
        context = StubContext(clock=self.clock)
        kv = make_kv(ShmKVOptions(directory=self.place), context)
        lease = make_lease(ShmLeaseOptions(directory=self.place), context)
        await kv.open()
        await lease.open()
        try:
            yield Stores(kv, lease)
        finally:
            await lease.close()
            await kv.close()

    async def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def now(self) -> float:
        return self.clock()


class TestShmKV(InSharedMemory, KVBackendSuite):
    pass


class TestShmLease(InSharedMemory, LeaseBackendSuite):
    pass
