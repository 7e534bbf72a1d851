"""Leases in shared memory. They end by the system's monotonic clock, which all processes of the host read alike."""

from __future__ import annotations

import math
import secrets
from functools import partial

from stagewire import Clock, Lease
from stagewire_shm import ledger
from stagewire_shm.index import Transaction
from stagewire_shm.options import ShmLeaseOptions
from stagewire_shm.store import Store


class ShmLease:
    """A `LeaseBackend` for the processes of one user on one host. Belongs to one event loop."""

    def __init__(self, options: ShmLeaseOptions, clock: Clock) -> None:
        self._store = Store(options, clock)
        self._clock = clock

    async def open(self) -> None:
        """Make the store, or open the one that is there. Raises `KVError`."""
        await self._store.open()

    async def grant(self, ttl: float) -> Lease:
        """Grant a new lease; its generation is greater than that of every lease before it."""
        if not (ttl > 0 and math.isfinite(ttl)):
            raise ValueError(f"ttl is {ttl}: a lease lasts for more than 0 seconds, and not for ever")
        before, name = self._clock(), secrets.token_hex(12)
        generation = await self._store.transact(partial(ledger.grant, name=name, ttl=ttl))
        return Lease(name, generation, ttl, before + ttl)

    async def keepalive(self, lease: Lease) -> Lease:
        """Extend the lease by its TTL from now. Raises `LeaseLost`."""
        before = self._clock()
        await self._store.transact(partial(ledger.extend, lease=lease))
        return Lease(lease.id, lease.generation, lease.ttl, before + lease.ttl)

    async def attach(self, lease: Lease, key: str) -> None:
        """Tie a key to the lease. Raises `LeaseLost`."""
        await self._store.transact(partial(ledger.tie, lease=lease, key=key))

    async def revoke(self, lease: Lease) -> None:
        """End the lease and drop its keys."""
        await self._store.transact(partial(ledger.revoke, lease=lease))

    async def alive(self, lease: Lease) -> bool:
        """Return whether this generation of the lease has not ended."""

        def action(work: Transaction) -> bool:
            return ledger.alive(work, lease)

        return await self._store.transact(action)

    async def close(self) -> None:
        """Close this process's access; the leases run on. Idempotent."""
        await self._store.close()
