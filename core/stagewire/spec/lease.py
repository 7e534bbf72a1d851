"""The lease contract (LS-1, LS-7): a right that ends by itself when its holder falls silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lease:
    """A granted lease.

    Attributes:
        id: Its name in the backend.
        generation: Fencing number; a later grant always has a greater one. It stays the same through keepalives.
        ttl: Seconds that one grant or keepalive lasts.
        expires_at: On the App's monotonic clock, when the holder must stop using it. Counted from *before* the request
            was sent, so the holder always stops before the backend may end the lease.
    """

    id: str
    generation: int
    ttl: float
    expires_at: float


class LeaseBackend(Protocol):
    """An asyncio store of leases. In-memory and Redis backends behave the same."""

    async def open(self) -> None:
        """Connect. Raises `KVError` naming the cause and the remedy."""

    async def grant(self, ttl: float) -> Lease:
        """Grant a new lease for ``ttl`` seconds (greater than 0)."""

    async def keepalive(self, lease: Lease) -> Lease:
        """Extend by the lease's TTL from now; returns the lease with its new ``expires_at``.

        Raises:
            LeaseLost: It has ended or was revoked. A lost lease never comes back.
        """

    async def attach(self, lease: Lease, key: str) -> None:
        """Tie a key to the lease: it vanishes when the lease ends. Raises `LeaseLost`.

        The key may have no value yet. A tie lasts until the lease ends, the key is deleted, or it is tied to another
        lease; putting a new value without a lease leaves it as it is.
        """

    async def revoke(self, lease: Lease) -> None:
        """End the lease now, and the keys attached to it. Ending an ended lease does nothing."""

    async def alive(self, lease: Lease) -> bool:
        """Return whether the backend still holds this generation of the lease."""

    async def close(self) -> None:
        """Let go of the connection, not of the leases. Idempotent."""
