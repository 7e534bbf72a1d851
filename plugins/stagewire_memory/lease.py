"""Leases in memory."""

from __future__ import annotations

import math

from stagewire import Closed, Lease
from stagewire_memory.table import LeaseTable


class MemoryLease:
    """A `LeaseBackend` in this process. Operations never wait, so a cancel cannot fall inside one."""

    def __init__(self, table: LeaseTable) -> None:
        self._table = table
        self._closed = False

    async def open(self) -> None:
        """There is nothing to connect to."""
        self._enter()

    async def grant(self, ttl: float) -> Lease:
        """Grant a new lease; its generation is greater than that of every lease before it."""
        self._enter()
        if not (ttl > 0 and math.isfinite(ttl)):
            raise ValueError(f"ttl is {ttl}: a lease lasts for more than 0 seconds, and not for ever")
        return self._table.grant(ttl)

    async def keepalive(self, lease: Lease) -> Lease:
        """Extend the lease by its TTL from now. Raises `LeaseLost`."""
        self._enter()
        return self._table.keepalive(lease)

    async def attach(self, lease: Lease, key: str) -> None:
        """Tie a key to the lease. Raises `LeaseLost`."""
        self._enter()
        self._table.tie(lease, key)

    async def revoke(self, lease: Lease) -> None:
        """End the lease and drop its keys."""
        self._enter()
        self._table.revoke(lease)

    async def alive(self, lease: Lease) -> bool:
        """Return whether this generation of the lease has not ended."""
        self._enter()
        return self._table.find(lease) is not None

    async def close(self) -> None:
        """Close this face; the leases run on. Idempotent."""
        self._closed = True

    def _enter(self) -> None:
        if self._closed:
            raise Closed("the lease backend was closed")
