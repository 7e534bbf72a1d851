"""A lease backend that does what a test says, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from stagewire import Lease, LeaseLost


class ScriptedLeases:
    """Grants leases and answers keepalives with what ``answer`` makes of them; remembers when each was asked."""

    def __init__(self) -> None:
        self.grants = 0
        self.asked: list[tuple[float, str]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.delay = 0.0
        self.grant_delay = 0.0
        self.failure: Exception | None = None
        self.grant_failure: Exception | None = None
        self.stuck = False
        self.dead: set[str] = set()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def grant(self, ttl: float) -> Lease:
        sent_at = self.now()
        self.grants += 1
        number = self.grants
        await asyncio.sleep(self.grant_delay)
        if self.grant_failure is not None:
            raise self.grant_failure
        return Lease(f"lease-{number}", number, ttl, sent_at + ttl)

    async def keepalive(self, lease: Lease) -> Lease:
        sent_at = self.now()
        self.asked.append((sent_at, lease.id))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self._take_time()
        finally:
            self.under_way -= 1
        if lease.id in self.dead:
            raise LeaseLost(f"{lease.id} is dead")
        if self.failure is not None:
            raise self.failure
        return Lease(lease.id, lease.generation, lease.ttl, sent_at + lease.ttl)

    async def _take_time(self) -> None:
        if not self.stuck:
            await asyncio.sleep(self.delay)
            return
        while self.stuck:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    async def attach(self, lease: Lease, key: str) -> None:
        raise NotImplementedError

    async def revoke(self, lease: Lease) -> None:
        self.dead.add(lease.id)

    async def alive(self, lease: Lease) -> bool:
        return lease.id not in self.dead

    async def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture
def backend() -> ScriptedLeases:
    return ScriptedLeases()


@pytest.fixture
def losses() -> list[tuple[float, str, str]]:
    """Losses that were pushed: when, which lease, why."""
    return []


@pytest.fixture
def note_loss(losses: list[tuple[float, str, str]]) -> Callable[[Lease, Exception], None]:
    def note(lease: Lease, cause: Exception) -> None:
        losses.append((asyncio.get_running_loop().time(), lease.id, str(cause)))

    return note
