"""Payloads of chunks on their way into the store: several at once, bounded in number and in bytes (TR-5, TR-10)."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError

from stagewire.claims.claim_check import Claim, ClaimCheck
from stagewire.errors import Permanent, Retryable
from stagewire.spec.transport import ChunkMessage

CHECK_INS = 4
"""Payloads of one put that are stored at once."""

CHECK_IN_BYTES = 64 * 1024 * 1024
"""Bytes of one put that are stored at once; a larger payload is stored alone."""


class CheckIn:
    """One payload that is being stored, or was, for a message that is not sent yet. Any thread may call any method."""

    def __init__(self, message: ChunkMessage, check: ClaimCheck, loop: asyncio.AbstractEventLoop) -> None:
        self.message = message
        self._check = check
        self._loop = loop
        self._claim: Claim | None = None
        self._dropped = False
        self._travels: ChunkMessage | None = None
        self._stored = asyncio.run_coroutine_threadsafe(self._store(), loop)

    async def _store(self) -> Claim:
        claim = self._claim = await self._check.check_in(self.message["data"])
        if self._dropped:
            claim.drop()
        return claim

    def outgoing(self, timeout: float) -> ChunkMessage:
        """Wait until the payload is stored; returns what travels, always the same object.

        Raises:
            Retryable: The store failed, or had no result within ``timeout`` seconds.
            Permanent: The payload cannot be stored, or was dropped meanwhile.
        """
        if self._travels is None:
            try:
                claim = self._stored.result(timeout)
            except CancelledError:
                raise Permanent("the request was cleaned up while a payload of it was being stored") from None
            except FutureTimeoutError:
                raise Retryable(f"the payload was not stored within {timeout:g} s") from None
            self._travels = ChunkMessage(**{**self.message, "data": None, "claim": claim.key})
        return self._travels

    def hand_over(self) -> None:
        """The message was sent: the payload is its receiver's."""
        self._loop.call_soon_threadsafe(self._hand_over)

    def drop(self) -> None:
        """The message will not be sent: stop storing its payload, or remove it. Never waits."""
        self._loop.call_soon_threadsafe(self._drop)

    def _hand_over(self) -> None:
        if self._claim is not None:
            self._claim.hand_over()

    def _drop(self) -> None:
        self._dropped = True
        self._stored.cancel()
        if self._claim is not None:
            self._claim.drop()


class Window:
    """The payloads of one put that are being stored: says whether a further one may begin. Belongs to one thread."""

    def __init__(self) -> None:
        self._begun: deque[tuple[int, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        """How many payloads are being stored."""
        return len(self._begun)

    def has_room(self, size: int) -> bool:
        """Return whether a payload of ``size`` bytes may begin."""
        return not self._begun or (len(self._begun) < CHECK_INS and self._bytes + size <= CHECK_IN_BYTES)

    def begin(self, place: int, size: int) -> None:
        """Count the payload in this place of the put."""
        self._begun.append((place, size))
        self._bytes += size

    def end_oldest(self) -> int:
        """Stop counting the payload that began first; returns its place."""
        place, size = self._begun.popleft()
        self._bytes -= size
        return place
