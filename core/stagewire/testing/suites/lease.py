"""The promises of `LeaseBackend`: LS-1 and LS-7."""

from __future__ import annotations

import asyncio
import dataclasses

from stagewire.errors import Closed, LeaseLost
from stagewire.spec.lease import Lease
from stagewire.testing.suites.base import refused
from stagewire.testing.suites.kv import StoreHarness, Stores, over_stores


class LeaseBackendSuite(StoreHarness):
    """Tests of a lease backend. Subclass it as ``Test…`` and override `stores`."""

    @over_stores
    async def test_ls1_a_lease_says_what_it_is(self, stores: Stores) -> None:
        lease = await stores.lease.grant(self.ttl)
        assert lease.id
        assert lease.ttl == self.ttl
        assert await stores.lease.alive(lease)

    @over_stores
    async def test_ls1_validity_counts_from_before_the_request(self, stores: Stores) -> None:
        before = self.now()
        lease = await stores.lease.grant(self.ttl)
        kept = await stores.lease.keepalive(lease)
        after = self.now()
        for held in (lease, kept):
            assert before + self.ttl <= held.expires_at <= after + self.ttl
        await self.advance(max(0.0, kept.expires_at - self.now()) + self.ttl * 0.2)
        await self.ended(stores, kept)

    @over_stores
    async def test_ls1_a_lease_runs_out(self, stores: Stores) -> None:
        lease, longer = await stores.lease.grant(self.ttl), await stores.lease.grant(self.ttl * 20)
        await self.advance(self.ttl * 0.3)
        assert await stores.lease.alive(lease)
        await self.advance(self.ttl)
        await self.ended(stores, lease)
        assert await stores.lease.alive(longer)

    @over_stores
    async def test_ls1_keepalive_extends_from_now(self, stores: Stores) -> None:
        lease = await stores.lease.grant(self.ttl)
        for _ in range(3):
            await self.advance(self.ttl * 0.6)
            kept = await stores.lease.keepalive(lease)
            assert (kept.id, kept.generation, kept.ttl) == (lease.id, lease.generation, lease.ttl)
            assert kept.expires_at > lease.expires_at
            lease = kept
        assert await stores.lease.alive(lease)

    @over_stores
    async def test_ls1_a_lost_lease_never_comes_back(self, stores: Stores) -> None:
        lease = await stores.lease.grant(self.ttl)
        await self.advance(self.ttl * 1.2)
        for _ in range(2):
            await refused(LeaseLost, stores.lease.keepalive(lease), "a keepalive of a lease that ran out")
            assert not await stores.lease.alive(lease)
        await refused(LeaseLost, stores.lease.attach(lease, self.unique("key")), "an attach to a lease that ran out")

    @over_stores
    async def test_ls1_revoke_ends_a_lease_at_once_and_is_idempotent(self, stores: Stores) -> None:
        lease, other = await stores.lease.grant(self.ttl * 20), await stores.lease.grant(self.ttl * 20)
        await stores.lease.revoke(lease)
        await stores.lease.revoke(lease)
        assert not await stores.lease.alive(lease)
        assert await stores.lease.alive(other)
        await refused(LeaseLost, stores.lease.keepalive(lease), "a keepalive of a revoked lease")

    @over_stores
    async def test_ls7_generations_increase(self, stores: Stores) -> None:
        leases = [await stores.lease.grant(self.ttl) for _ in range(3)]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(stores.lease.grant(self.ttl)) for _ in range(10)]
        generations = [lease.generation for lease in leases]
        together = {task.result().generation for task in tasks}
        assert generations == sorted(set(generations)), "a later grant has a greater generation"
        assert len(together) == len(tasks), "no two leases share a generation"
        assert min(together) > max(generations)

    @over_stores
    async def test_ls7_another_generation_has_no_rights(self, stores: Stores) -> None:
        lease = await stores.lease.grant(self.ttl * 20)
        older = dataclasses.replace(lease, generation=lease.generation - 1)
        await refused(LeaseLost, stores.lease.keepalive(older), "a keepalive of an older generation")
        await refused(LeaseLost, stores.kv.put(self.unique("key"), b"", older), "a put under an older generation")
        await stores.lease.revoke(older)
        assert not await stores.lease.alive(older)
        assert await stores.lease.alive(lease), "revoking an older generation leaves this one alone"

    @over_stores
    async def test_ls1_a_ttl_must_be_positive(self, stores: Stores) -> None:
        for ttl in (0.0, -1.0):
            await refused(ValueError, stores.lease.grant(ttl), f"a grant for {ttl} s")

    @over_stores
    async def test_ls1_leases_outlive_the_connection(self, stores: Stores) -> None:
        key, lease = self.unique("key"), await stores.lease.grant(self.ttl * 20)
        await stores.kv.put(key, b"value", lease)
        await stores.lease.close()
        await stores.lease.close()
        await refused(Closed, stores.lease.grant(self.ttl), "a grant after close")
        assert await self.read(stores.kv, key) == b"value"

    async def ended(self, stores: Stores, lease: Lease) -> None:
        """Wait until the backend has ended the lease."""

        async def dead() -> bool:
            return not await stores.lease.alive(lease)

        await self.eventually_awaited(dead, f"lease {lease.id} ends")
