"""Leases in Redis: a key with the lease's generation, that expires unless it is kept alive."""

from __future__ import annotations

import math
import secrets

from stagewire import Clock, Lease, LeaseLost, Traffic
from stagewire_redis.options import RedisLeaseOptions
from stagewire_redis.scripts import ATTACH, BATCH, GRANT, KEEPALIVE, REVOKE
from stagewire_redis.server import Server, milliseconds, probe_server


class RedisLease:
    """A `LeaseBackend` in Redis. Belongs to one event loop.

    Redis knows no fencing of its own: the generation is minted atomically, and every write under a lease checks it in
    the same script that writes (LS-7).
    """

    def __init__(self, options: RedisLeaseOptions, clock: Clock) -> None:
        self._options = options
        self._server = Server(options)
        self._clock = clock

    async def open(self) -> None:
        """Connect. Raises `KVError`."""
        await self._server.open()

    async def probe(self, traffic: Traffic) -> str:  # noqa: ARG002 — what goes over the transport does not matter here
        """Connect with a connection of its own and write: one that is full or read-only is found. Raises `KVError`."""
        return await probe_server(self._options)

    async def grant(self, ttl: float) -> Lease:
        """Grant a new lease; its generation is greater than that of every lease before it."""
        if not (ttl > 0 and math.isfinite(ttl)):
            raise ValueError(f"ttl is {ttl}: a lease lasts for more than 0 seconds, and not for ever")
        sent_at, name = self._clock(), secrets.token_hex(12)
        generation = await self._server.run(GRANT, name, milliseconds(ttl))
        return Lease(name, int(generation), ttl, sent_at + ttl)

    async def keepalive(self, lease: Lease) -> Lease:
        """Extend the lease and what is tied to it by its TTL from now. Raises `LeaseLost`.

        The keys come in batches after the lease, so one sent in the last moment of a lease with very many keys may find
        some of them gone.
        """
        sent_at, cursor = self._clock(), b"0"
        while True:
            identity = (lease.id, lease.generation, milliseconds(lease.ttl))
            cursor = await self._server.run(KEEPALIVE, *identity, cursor, BATCH)
            if cursor is None:
                raise _lost(lease)
            if int(cursor) == 0:
                return Lease(lease.id, lease.generation, lease.ttl, sent_at + lease.ttl)

    async def attach(self, lease: Lease, key: str) -> None:
        """Tie a key to the lease. Raises `LeaseLost`."""
        if not await self._server.run(ATTACH, lease.id, lease.generation, key):
            raise _lost(lease)

    async def revoke(self, lease: Lease) -> None:
        """End the lease, then drop its keys in batches. Cancelled or failing in between, the rest expires."""
        while await self._server.run(REVOKE, lease.id, lease.generation, BATCH):
            pass

    async def alive(self, lease: Lease) -> bool:
        """Return whether the server still holds this generation of the lease."""
        generation = await self._server.command("GET", f"{self._server.prefix}lease:{lease.id}")
        return generation is not None and int(generation) == lease.generation

    async def close(self) -> None:
        """Close the connections; the leases run on. Idempotent."""
        await self._server.close()


def _lost(lease: Lease) -> LeaseLost:
    return LeaseLost(f"lease {lease.id} of generation {lease.generation} has ended: take a new one")
