"""Claim-check over the mailboxes: large payloads travel as claims, in a header of their message (TR-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from stagewire.claims.claim_check import Claim, ClaimCheck
from stagewire.spec.transport import INLINE, BatchTransport, Delivery, Message

CLAIM = "claim"
"""Header of a message whose payload is elsewhere."""


class _Redeemed:
    """A delivery with its payload fetched."""

    def __init__(self, inner: Delivery, message: Message, owner: ClaimedBatches) -> None:
        self._inner = inner
        self._message = message
        self._owner = owner

    @property
    def message(self) -> Message:
        return self._message

    @property
    def redelivered(self) -> bool:
        return self._inner.redelivered

    async def reply(self, payload: Any, headers: Mapping[str, str] | None = None) -> None:
        async with self._owner.outgoing([Message(payload, headers or {})]) as (message,):
            await self._inner.reply(message.payload, message.headers)


class ClaimedBatches:
    """A `BatchTransport` over another one. Belongs to one event loop."""

    def __init__(self, inner: BatchTransport, check: ClaimCheck) -> None:
        self._inner = inner
        self._check = check

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        """Put messages, large payloads by claim."""
        async with self.outgoing(messages) as small:
            await self._inner.put_batch(mailbox, small, timeout=timeout)

    @asynccontextmanager
    async def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AsyncIterator[Sequence[Delivery]]:
        """Take messages with their payloads; claims are removed when the block ends well."""
        async with self._inner.get_batch(mailbox, limit=limit, timeout=timeout) as batch:
            yield [_Redeemed(delivery, await self._incoming(delivery.message), self) for delivery in batch]
            claims = [key for delivery in batch if (key := delivery.message.headers.get(CLAIM))]
        for key in claims:
            await self._check.remove(key)

    async def request(self, mailbox: str, message: Message, *, timeout: float) -> Message:
        """Put a message and wait for its reply."""
        async with self.outgoing([message]) as (small,):
            reply = await self._inner.request(mailbox, small, timeout=timeout)
        full = await self._incoming(reply)
        if CLAIM in reply.headers:
            await self._check.remove(reply.headers[CLAIM])
        return full

    async def purge(self, mailbox: str) -> int:
        """Drop what waits in the mailbox; the claims in it end with their lease."""
        return await self._inner.purge(mailbox)

    @asynccontextmanager
    async def outgoing(self, messages: Sequence[Message]) -> AsyncIterator[Sequence[Message]]:
        """Check large payloads in for the length of the block that sends them; handed over when it ends well."""
        claims: list[Claim] = []
        try:
            yield [await self._outgoing(message, claims) for message in messages]
            for claim in claims:
                claim.hand_over()
        finally:
            for claim in claims:
                claim.drop()  # does nothing to one that was handed over

    async def _outgoing(self, message: Message, claims: list[Claim]) -> Message:
        if INLINE in message.headers or not self._check.is_large(message.payload):
            return message
        claim = await self._check.check_in(message.payload)
        claims.append(claim)
        return Message(None, {**message.headers, CLAIM: claim.key})

    async def _incoming(self, message: Message) -> Message:
        key = message.headers.get(CLAIM)
        if key is None:
            return message
        headers = {name: value for name, value in message.headers.items() if name != CLAIM}
        return Message(await self._check.redeem(key), headers)
