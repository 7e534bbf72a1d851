"""The promises of `KVBackend`, with LS-1 and LS-7 where they concern values."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, NamedTuple, TypeVar

from stagewire.errors import Closed, KVError, LeaseLost
from stagewire.spec.kv import MAX_VALUE, Buffer, KVBackend
from stagewire.spec.lease import LeaseBackend
from stagewire.testing.suites.base import Suite, refused, scenario

K = TypeVar("K", bound="StoreHarness")


class Stores(NamedTuple):
    """A KV backend and the lease backend that belongs to it; both open."""

    kv: KVBackend
    lease: LeaseBackend


class StoreHarness(Suite):
    """What a subclass overrides: `stores`, and `advance` and `now` where the clock is injected.

    Attributes:
        ttl: Seconds of the leases that the tests take. Long enough that one does not run out between two calls, and no
            longer, because tests wait for its end.
        large: Bytes of a value that is large for the backend.
    """

    ttl: ClassVar[float] = 1.0
    large: ClassVar[int] = 20 * 1024 * 1024

    def stores(self) -> AbstractAsyncContextManager[Stores]:
        """Open both backends, and close them after the block."""
        raise NotImplementedError("override stores()")

    async def read(self, kv: KVBackend, key: str) -> bytes | None:
        """Return a copy of the value."""
        holder = await kv.get(key)
        if holder is None:
            return None
        with holder:
            return bytes(holder.data)

    async def gone(self, kv: KVBackend, key: str) -> None:
        """Wait until the key has vanished."""

        async def absent() -> bool:
            return not await kv.exists(key)

        await self.eventually_awaited(absent, f"{key!r} vanishes")
        assert await kv.get(key) is None


def over_stores(test: Callable[[K, Stores], Awaitable[None]]) -> Callable[[K], None]:
    """Make a test of a coroutine method that takes the stores."""
    return scenario(test, lambda suite: suite.stores())


class KVBackendSuite(StoreHarness):
    """Tests of a KV backend. Subclass it as ``Test…`` and override `stores`."""

    @over_stores
    async def test_kv_values_come_back_as_they_were_put(self, stores: Stores) -> None:
        key = self.unique("key")
        values: list[Buffer] = [b"", b"\x00\xff" * 10, bytearray(b"mutable"), memoryview(b"a view")[2:]]
        for value in values:
            await stores.kv.put(key, value)
            assert await self.read(stores.kv, key) == bytes(value), "the last value put is the one that counts"

    @over_stores
    async def test_kv_large_values_come_back_whole(self, stores: Stores) -> None:
        key, value = self.unique("key"), bytes(range(256)) * (self.large // 256)
        await stores.kv.put(key, value)
        holder = await stores.kv.get(key)
        assert holder is not None
        with holder:
            assert len(holder) == len(value)
            assert holder.data == value
            assert holder.data.readonly

    @over_stores
    async def test_kv_a_put_copies_what_could_change(self, stores: Stores) -> None:
        key, value = self.unique("key"), bytearray(b"before")
        await stores.kv.put(key, value)
        value[:] = b"after!"
        assert await self.read(stores.kv, key) == b"before"

    @over_stores
    async def test_kv_an_absent_key_is_none(self, stores: Stores) -> None:
        key = self.unique("key")
        assert await stores.kv.get(key) is None
        assert not await stores.kv.exists(key)
        assert not await stores.kv.delete(key)

    @over_stores
    async def test_kv_delete_removes_once(self, stores: Stores) -> None:
        key = self.unique("key")
        await stores.kv.put(key, b"value")
        assert await stores.kv.exists(key)
        assert await stores.kv.delete(key)
        assert not await stores.kv.delete(key)
        assert await stores.kv.get(key) is None

    @over_stores
    async def test_kv_keys_are_listed_by_prefix(self, stores: Stores) -> None:
        prefix = self.unique("prefix") + ":[*]?"
        keys = [f"{prefix}{number}" for number in range(5)]
        for key in [*keys, self.unique("other")]:
            await stores.kv.put(key, b"value")
        assert sorted(await stores.kv.keys(prefix)) == keys
        assert set(keys) <= set(await stores.kv.keys())

    @over_stores
    async def test_tk4_a_holder_outlives_its_key(self, stores: Stores) -> None:
        key = self.unique("key")
        await stores.kv.put(key, b"first value")
        holder = await stores.kv.get(key)
        assert holder is not None
        await stores.kv.put(key, b"second")
        await stores.kv.delete(key)
        assert bytes(holder.data) == b"first value"
        part = holder.data[6:]
        holder.release()
        holder.release()
        assert bytes(part) == b"value", "a slice that is still referenced stays valid"
        try:
            raise AssertionError(f"a released holder must not give {holder.data!r}")
        except Closed:
            pass

    @over_stores
    async def test_kv_a_value_that_is_too_large_is_refused(self, stores: Stores) -> None:
        key = self.unique("key")
        await stores.kv.put(key, b"small")
        too_large = memoryview(bytes(MAX_VALUE + 1))
        await refused(KVError, stores.kv.put(key, too_large), "a value above MAX_VALUE")
        assert await self.read(stores.kv, key) == b"small", "a refused put changes nothing"

    @over_stores
    async def test_kv_many_at_once_do_not_mix(self, stores: Stores) -> None:
        values = {self.unique("key"): bytes([number]) * (number * 1000) for number in range(40)}
        async with asyncio.TaskGroup() as group:
            for key, value in values.items():
                group.create_task(stores.kv.put(key, value))
        async with asyncio.TaskGroup() as group:
            reads = {key: group.create_task(self.read(stores.kv, key)) for key in values}
        assert {key: task.result() for key, task in reads.items()} == values

    @over_stores
    async def test_kv_a_cancelled_put_shows_all_or_nothing(self, stores: Stores) -> None:
        value = bytes(range(256)) * (self.large // 256)
        for turns in range(12):
            key = self.unique("key")
            put = asyncio.create_task(stores.kv.put(key, value))
            for _ in range(turns):
                await asyncio.sleep(0)
            put.cancel()
            await asyncio.gather(put, return_exceptions=True)
            assert await self.read(stores.kv, key) in (None, value), f"half a value after {turns} turns"
            await stores.kv.delete(key)

    @over_stores
    async def test_kv_a_closed_backend_says_so(self, stores: Stores) -> None:
        await stores.kv.close()
        await stores.kv.close()
        await refused(Closed, stores.kv.get("key"), "a get after close")
        await refused(Closed, stores.kv.put("key", b"value"), "a put after close")

    @over_stores
    async def test_ls1_a_value_vanishes_when_its_lease_is_revoked(self, stores: Stores) -> None:
        key, kept = self.unique("key"), self.unique("kept")
        lease, other = await stores.lease.grant(self.ttl * 20), await stores.lease.grant(self.ttl * 20)
        await stores.kv.put(key, b"value", lease)
        await stores.kv.put(kept, b"value", other)
        assert await self.read(stores.kv, key) == b"value"
        await stores.lease.revoke(lease)
        await self.gone(stores.kv, key)
        assert await self.read(stores.kv, kept) == b"value", "another lease's value stays"

    @over_stores
    async def test_ls1_a_value_vanishes_when_its_lease_runs_out(self, stores: Stores) -> None:
        key, unleased = self.unique("key"), self.unique("unleased")
        await stores.kv.put(unleased, b"value")
        await stores.kv.put(key, b"value", await stores.lease.grant(self.ttl))
        await self.advance(self.ttl * 1.2)
        await self.gone(stores.kv, key)
        assert await self.read(stores.kv, unleased) == b"value"

    @over_stores
    async def test_ls1_a_value_stays_while_its_lease_is_kept_alive(self, stores: Stores) -> None:
        key, lease = self.unique("key"), await stores.lease.grant(self.ttl)
        await stores.kv.put(key, b"value", lease)
        for _ in range(3):
            await self.advance(self.ttl * 0.5)
            lease = await stores.lease.keepalive(lease)
        assert await self.read(stores.kv, key) == b"value"
        await self.advance(self.ttl * 1.2)
        await self.gone(stores.kv, key)

    @over_stores
    async def test_ls1_the_last_lease_of_a_value_decides(self, stores: Stores) -> None:
        key = self.unique("key")
        first, second = await stores.lease.grant(self.ttl * 20), await stores.lease.grant(self.ttl * 20)
        await stores.kv.put(key, b"first", first)
        await stores.kv.put(key, b"second", second)
        await stores.lease.revoke(first)
        assert await self.read(stores.kv, key) == b"second"
        await stores.kv.put(key, b"third")
        await stores.lease.revoke(second)
        await self.gone(stores.kv, key)

    @over_stores
    async def test_ls1_an_attached_key_vanishes_and_a_deleted_one_is_free(self, stores: Stores) -> None:
        before, after, freed = self.unique("before"), self.unique("after"), self.unique("freed")
        lease = await stores.lease.grant(self.ttl * 20)
        await stores.kv.put(before, b"value")
        for key in (before, after, freed):
            await stores.lease.attach(lease, key)
        await stores.kv.put(after, b"value")
        await stores.kv.delete(freed)
        await stores.kv.put(freed, b"value")
        await stores.lease.revoke(lease)
        await self.gone(stores.kv, before)
        await self.gone(stores.kv, after)
        assert await self.read(stores.kv, freed) == b"value"

    @over_stores
    async def test_ls7_an_ended_lease_writes_nothing(self, stores: Stores) -> None:
        key = self.unique("key")
        stale = await stores.lease.grant(self.ttl)
        await stores.kv.put(key, b"old", stale)
        await self.advance(self.ttl * 1.2)
        await refused(LeaseLost, stores.kv.put(key, b"too late", stale), "a put under a lease that ran out")
        assert await self.read(stores.kv, key) is None
        successor = await stores.lease.grant(self.ttl * 20)
        await stores.kv.put(key, b"new", successor)
        await refused(LeaseLost, stores.kv.put(key, b"too late", stale), "a put under an old generation")
        assert await self.read(stores.kv, key) == b"new"

    @over_stores
    async def test_ls7_a_revoked_lease_writes_nothing(self, stores: Stores) -> None:
        key, lease = self.unique("key"), await stores.lease.grant(self.ttl * 20)
        await stores.lease.revoke(lease)
        await refused(LeaseLost, stores.kv.put(key, b"too late", lease), "a put under a revoked lease")
        assert not await stores.kv.exists(key)
