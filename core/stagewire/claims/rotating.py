"""A lease for what outlives its sender: taken anew now and then, and never kept alive.

What a claim refers to is fetched by somebody else, at a time that its sender does not learn. Under a lease that is kept
alive, a claim whose message expired would stay for as long as its sender lives; under these it is gone after the TTL
whatever happens.
"""

from __future__ import annotations

import asyncio

from stagewire.spec.lease import Lease, LeaseBackend
from stagewire.spec.provider import Clock

SHARE = 4
"""A new lease is taken when a quarter of the current one's TTL is over, so a key lasts for three quarters at least."""


class RotatingLease:
    """Hands out a lease with at least three quarters of ``ttl`` seconds to live. Belongs to one event loop."""

    def __init__(self, backend: LeaseBackend, ttl: float, clock: Clock) -> None:
        self._backend = backend
        self._ttl = ttl
        self._clock = clock
        self._current: Lease | None = None
        self._lock = asyncio.Lock()

    async def acquire(self) -> Lease:
        """Return the current lease, or a new one. Raises what the backend raises."""
        async with self._lock:
            if self._current is None or self._current.expires_at - self._clock() < self._ttl * (1 - 1 / SHARE):
                self._current = await self._backend.grant(self._ttl)
            return self._current

    def discard(self) -> None:
        """Take a new lease next time: the backend called the current one lost."""
        self._current = None
