"""The Redis backends keep the promises of every KV and lease backend, on a private server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import pytest

from stagewire.testing import StubContext
from stagewire.testing.suites import KVBackendSuite, LeaseBackendSuite, StoreHarness, Stores
from stagewire_redis import RedisKVOptions, RedisLeaseOptions, make_kv, make_lease

pytestmark = pytest.mark.integration


class OnRedis(StoreHarness):
    ttl: ClassVar[float] = 0.4
    url: str

    @pytest.fixture(autouse=True)
    def _server(self, redis_url: str) -> None:
        self.url = redis_url

    def stores(self) -> AbstractAsyncContextManager[Stores]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Stores]:
        context, options = StubContext(clock=time.monotonic), {"url": self.url}
        kv = make_kv(RedisKVOptions.model_validate(options), context)
        lease = make_lease(RedisLeaseOptions.model_validate(options), context)
        await kv.open()
        await lease.open()
        try:
            yield Stores(kv, lease)
        finally:
            await lease.close()
            await kv.close()


class TestRedisKV(OnRedis, KVBackendSuite):
    pass


class TestRedisLease(OnRedis, LeaseBackendSuite):
    pass
