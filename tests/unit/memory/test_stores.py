"""What the in-memory backends promise beyond their contracts: no copy, a budget, and memory that is freed."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest
from pydantic import ValidationError

from stagewire import Closed, KVError, Lease, LeaseLost
from stagewire.testing import ManualClock, StubContext
from stagewire_memory import LeaseTable, MemoryKV, MemoryKVOptions, MemoryLease, MemoryLeaseOptions
from stagewire_memory.plugin import make_kv, make_lease, stagewire_kv_backends, stagewire_lease_backends


def stores(clock: ManualClock | None = None, **options: object) -> tuple[MemoryKV, MemoryLease]:
    context = StubContext(clock=clock or ManualClock())
    return make_kv(MemoryKVOptions.model_validate(options), context), make_lease(MemoryLeaseOptions(), context)


def test_a_get_copies_nothing() -> None:
    async def main() -> None:
        kv, _ = stores()
        value = bytes(10_000_000)
        tracemalloc.start()
        await kv.put("key", value)
        holders = [await kv.get("key") for _ in range(100)]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200_000
        assert all(holder is not None and holder.data.obj is value for holder in holders)

    asyncio.run(main())


def test_the_budget_counts_what_is_stored() -> None:
    async def main() -> None:
        kv, _ = stores(max_bytes=1000)
        await kv.put("a", bytes(600))
        with pytest.raises(KVError, match="the memory store is full: 600 of 1000 bytes are used and 'b' needs 500"):
            await kv.put("b", bytes(500))
        assert not await kv.exists("b")
        await kv.put("a", bytes(1000))  # in the place of the old one
        await kv.delete("a")
        await kv.put("b", bytes(1000))
        assert not await kv.delete("a")
        with pytest.raises(KVError):
            await kv.put("c", b"x")

    asyncio.run(main())


def test_a_refused_put_leaves_the_tie_as_it_was() -> None:
    async def main() -> None:
        kv, leases = stores(max_bytes=1000)
        first, second = await leases.grant(60), await leases.grant(60)
        await kv.put("key", b"old", first)
        with pytest.raises(KVError):
            await kv.put("key", bytes(2000), second)
        await leases.revoke(second)
        assert await kv.exists("key")
        await leases.revoke(first)
        assert not await kv.exists("key")

    asyncio.run(main())


def test_ls1_expired_values_are_freed_by_any_activity() -> None:
    async def main() -> None:
        clock = ManualClock()
        kv, leases = stores(clock, max_bytes=3_000_000)
        tracemalloc.start()
        for number in range(3):
            await kv.put(f"key{number}", bytearray(1_000_000), await leases.grant(10))
        clock.advance(10)
        assert not await kv.exists("anything")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 100_000
        tracemalloc.stop()
        await kv.put("new", bytes(3_000_000))

    asyncio.run(main())


def test_ls1_a_lease_ends_at_its_time_to_the_instant() -> None:
    async def main() -> None:
        clock = ManualClock()
        _, leases = stores(clock)
        lease = await leases.grant(10)
        assert lease.expires_at == clock() + 10
        clock.advance(9.999)
        kept = await leases.keepalive(lease)
        clock.advance(10)
        assert not await leases.alive(kept)
        with pytest.raises(LeaseLost, match=r"lease-1 of generation 1 has ended: take a new one"):
            await leases.keepalive(kept)

    asyncio.run(main())


def test_ls1_kept_leases_do_not_grow_the_heap() -> None:
    clock = ManualClock()
    table = LeaseTable(clock)
    lease = table.grant(10)
    for _ in range(1000):
        clock.advance(5)
        lease = table.keepalive(lease)
        table.tidy()
    assert len(table._due) == 1


def test_ls1_many_leases_end_in_any_order_and_leave_nothing() -> None:
    async def main() -> None:
        clock = ManualClock()
        kv, leases = stores(clock)
        for number in range(500):
            lease = await leases.grant(1 + number % 7)
            await kv.put(f"key{number}", b"value", lease)
            if number % 3 == 0:
                await leases.keepalive(lease)
            if number % 5 == 0:
                await leases.revoke(lease)
        clock.advance(8)
        assert await kv.keys() == []
        table = kv._leases
        assert [table._records, table._owners, table._due] == [{}, {}, []]

    asyncio.run(main())


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf")])
def test_ls1_a_ttl_is_a_positive_time(ttl: float) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="ttl"):
            await stores()[1].grant(ttl)

    asyncio.run(main())


def test_ls7_a_forged_lease_is_refused() -> None:
    async def main() -> None:
        kv, leases = stores()
        real = await leases.grant(60)
        for forged in (Lease("lease-9", 9, 60, real.expires_at), Lease(real.id, 9, 60, real.expires_at)):
            with pytest.raises(LeaseLost):
                await kv.put("key", b"value", forged)
        assert not await kv.exists("key")

    asyncio.run(main())


def test_two_apps_share_nothing() -> None:
    async def main() -> None:
        (kv, leases), (other_kv, other_leases) = stores(), stores()
        lease = await leases.grant(60)
        await kv.put("key", b"value", lease)
        assert not await other_kv.exists("key")
        assert not await other_leases.alive(lease)

    asyncio.run(main())


def test_close_drops_the_values_and_holders_stay() -> None:
    async def main() -> None:
        kv, leases = stores()
        lease = await leases.grant(60)
        await kv.put("key", b"value", lease)
        holder = await kv.get("key")
        await kv.close()
        assert holder is not None
        assert bytes(holder.data) == b"value"
        await leases.revoke(lease)
        with pytest.raises(Closed):
            await kv.open()
        await leases.close()
        with pytest.raises(Closed):
            await leases.open()

    asyncio.run(main())


def test_the_plugin_offers_memory_on_two_axes() -> None:
    (kv,), (lease,) = stagewire_kv_backends(), stagewire_lease_backends()
    assert (kv.name, lease.name) == ("memory", "memory")
    context = StubContext()
    options = kv.options.model_validate({"max_bytes": "1MiB", "reference_threshold": "64KiB"})
    backend = kv.factory(options, context)
    assert backend.reference_threshold == 64 * 1024
    assert isinstance(lease.factory(lease.options(), context), MemoryLease)
    with pytest.raises(ValidationError):
        kv.options.model_validate({"max_bytes": 0})
    assert all("description" in item for item in kv.options.model_json_schema()["properties"].values())
