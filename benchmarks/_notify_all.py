"""The design of the source, taken literally, as a peer: one lock, one Condition, ``notify_all`` on every put.

It is what one writes first, and it is correct. Every put wakes every waiting consumer, so its cost grows with them.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from types import TracebackType
from typing import Any, Self


class Envelope:
    """A resource with its slot, which is released once."""

    def __init__(self, payload: Any, slots: asyncio.Semaphore, ttl: float) -> None:
        self.payload = payload
        self.expires_at = time.monotonic() + ttl
        self._slots = slots
        self._released = False

    @classmethod
    async def create_with_slot(cls, payload: Any, slots: asyncio.Semaphore, ttl: float) -> Self:
        await slots.acquire()
        return cls(payload, slots, ttl)

    def release(self) -> None:
        if not self._released:
            self._released = True
            self._slots.release()


class Inventory:
    """Two deques behind one Condition."""

    def __init__(self, slots: int) -> None:
        self.t_slots = asyncio.Semaphore(slots)
        self.q_slots = asyncio.Semaphore(slots)
        self._t: deque[Envelope] = deque()
        self._q: deque[Envelope] = deque()
        self._changed = asyncio.Condition()

    async def put_t(self, envelope: Envelope) -> None:
        await self._put(self._t, envelope)

    async def put_q(self, envelope: Envelope) -> None:
        await self._put(self._q, envelope)

    def claim_pair(self) -> Lease:
        return Lease(self)

    async def take(self) -> tuple[Envelope, Envelope]:
        async with self._changed:
            self._drop_expired()
            while not (self._t and self._q):
                await self._changed.wait()
                self._drop_expired()
            return self._t.popleft(), self._q.popleft()

    async def _put(self, stock: deque[Envelope], envelope: Envelope) -> None:
        async with self._changed:
            self._drop_expired()
            stock.append(envelope)
            self._changed.notify_all()

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for stock in (self._t, self._q):
            while stock and stock[0].expires_at <= now:
                stock.popleft().release()


class Lease:
    """A pair for the length of a block."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.pair: tuple[Envelope, Envelope] | None = None

    async def __aenter__(self) -> Self:
        self.pair = await self._inventory.take()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.pair is not None
        for envelope in self.pair:
            envelope.release()
