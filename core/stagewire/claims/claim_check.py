"""Large payloads leave their message: the bytes go into a KV backend, and the message carries a claim to them (TR-10).

Who checks a payload in owns its key until the message is on its way, through the owner of temporary keys: a put that
fails, a sender that dies, a message that cannot be sent leave nothing behind. Then the claim is handed over: who
redeems it removes it, and a claim that nobody redeems ends with its lease.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagewire.claims.rotating import RotatingLease
from stagewire.claims.temp_keys import GRACE, TemporaryKeys, Ticket
from stagewire.codec import decode, encode, join, weigh
from stagewire.errors import ChunkExpired, CodecError, KVError, LeaseLost, Permanent, Retryable
from stagewire.spec.kv import MAX_VALUE, KVBackend
from stagewire.spec.lease import LeaseBackend
from stagewire.spec.provider import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

DEFAULT_TTL = 3_600.0
IN_HAND = 256
"""Claims that one process may have checked in and not yet handed over; each holds its payload meanwhile."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A payload that was checked in: its key, and the sender's hold on it until the message is on its way."""

    key: str
    ticket: Ticket

    def hand_over(self) -> None:
        """The message with the claim was confirmed: whoever redeems it removes it."""
        self.ticket.hand_over()

    def drop(self) -> None:
        """The message was not sent: the key goes."""
        self.ticket.drop()


class ClaimCheck:
    """Checks payloads in and redeems claims. Belongs to one event loop.

    Args:
        kv: Where the bytes go; every process of the pipeline uses the same store.
        leases: The leases of that store.
        clock: The clock of `Lease.expires_at`.
        ttl: Seconds after which a claim that nobody redeemed is gone; longer than messages may wait.
        threshold: Payloads of this many bytes and more are checked in. Default: what the backend recommends.
        prefix: First part of the keys.
        grace: Seconds that `close` waits at most for keys that were not handed over (TK-5).
        log: For the events ``key.*``.
    """

    def __init__(
        self,
        kv: KVBackend,
        leases: LeaseBackend,
        *,
        clock: Clock,
        ttl: float = DEFAULT_TTL,
        threshold: int | None = None,
        prefix: str = "claim",
        grace: float = GRACE,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        self._kv = kv
        self._threshold = kv.reference_threshold if threshold is None else threshold
        self._prefix = prefix
        self._grace = grace
        self._lease = RotatingLease(leases, ttl, clock)
        self._keys = TemporaryKeys(kv, leases, tracked=IN_HAND, log=log)

    def is_large(self, payload: Any) -> bool:
        """Return whether a payload is to be checked in. From any thread."""
        return weigh(payload) >= self._threshold

    async def check_in(self, payload: Any) -> Claim:
        """Store a payload and return the claim to it. Cancelled, it leaves nothing behind.

        Raises:
            Permanent: It cannot be encoded, or is larger than the store takes.
            Retryable: The store or the lease failed, or too many claims are in hand.
        """
        body = self._encode(payload)
        try:
            lease = await self._lease.acquire()
            ticket = self._keys.begin_put(f"{self._prefix}-{secrets.token_hex(16)}", body, lease)
        except (KVError, LeaseLost) as error:
            raise Retryable(f"a payload of {len(body)} bytes could not be stored: {error}") from error
        try:
            await ticket.stored()
        except KVError as error:
            self._lease.discard()
            ticket.drop()
            raise Retryable(f"a payload of {len(body)} bytes could not be stored: {error}") from error
        except BaseException:
            ticket.drop()
            raise
        return Claim(ticket.key, ticket)

    async def redeem(self, key: str) -> Any:
        """Fetch the payload of a claim; it stays until `remove`.

        Raises:
            ChunkExpired: It is gone.
            Retryable: The store failed.
        """
        try:
            holder = await self._kv.get(key)
        except KVError as error:
            raise Retryable(f"the payload of claim {key} could not be fetched: {error}") from error
        if holder is None:
            raise ChunkExpired(
                f"the payload of claim {key} is gone: it waited longer than its lease, or was redeemed before"
            )
        with holder:
            try:
                return decode(holder.data)
            except CodecError as error:
                raise Permanent(f"the payload of claim {key} cannot be decoded: {error}") from error

    async def remove(self, key: str) -> None:
        """Remove a redeemed payload; what cannot be removed ends with its lease."""
        try:
            await self._kv.delete(key)
        except KVError:
            return

    async def close(self) -> None:
        """Let go of what was not handed over. Claims that were handed over stay, for others to redeem. Idempotent."""
        await self._keys.close(self._grace)

    def _encode(self, payload: Any) -> bytes:
        try:
            body = join(encode(payload))
        except CodecError as error:
            raise Permanent(f"a payload cannot be encoded: {error}") from error
        if len(body) > MAX_VALUE:
            raise Permanent(f"a payload of {len(body)} bytes is too large: at most {MAX_VALUE}, make smaller chunks")
        return body
