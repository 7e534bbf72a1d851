"""Claim-check over a whole transport."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from stagewire.claims.batches import ClaimedBatches
from stagewire.claims.chunks import ClaimedChunks
from stagewire.claims.claim_check import ClaimCheck
from stagewire.errors import Permanent
from stagewire.spec.probe import Probing, Traffic
from stagewire.spec.transport import BatchTransport, ChunkLink, ChunkTransport, Transport


class ClaimedTransport:
    """A `Transport` that sends large payloads as claims. The KV and lease backends are opened before it."""

    def __init__(self, inner: Transport, check: ClaimCheck) -> None:
        self._inner = inner
        self._check = check
        self._batches = ClaimedBatches(inner.batches(), check)
        self._links: dict[ChunkLink, ClaimedChunks] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Open the inner transport."""
        self._loop = asyncio.get_running_loop()
        await self._inner.open()

    def chunks(self, link: ChunkLink) -> ChunkTransport:
        """Return the chunk face of a link."""
        if self._loop is None:
            raise Permanent("the transport is not open: await transport.open() first")
        face = self._links.get(link)
        if face is None:
            face = self._links[link] = ClaimedChunks(self._inner.chunks(link), self._check, self._loop)
        return face

    def batches(self) -> BatchTransport:
        """Return the mailboxes."""
        return self._batches

    async def close(self) -> None:
        """Close the inner transport, then let go of claims in hand. Idempotent."""
        await self._inner.close()
        await self._check.close()

    async def probe(self, traffic: Traffic) -> str:
        """Try the inner transport out; see `stagewire.spec.probe`."""
        return await self._inner.probe(traffic) if isinstance(self._inner, Probing) else "nothing to connect to"

    def stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return the inner transport's counters."""
        return self._inner.stats()
