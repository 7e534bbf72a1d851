"""How one batch reaches its agent: by reference, and when that fails in the messages themselves (WS-8, WS-9)."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from stagewire import Closed, KVError, Lease, LeaseLost, Retryable, TransportError, describe
from stagewire.claims import TemporaryKeys, TooManyKeys
from stagewire.leases import SharedLease
from stagewire_writes.checksums import checksums
from stagewire_writes.errors import (
    AgentLost,
    ChecksumMismatch,
    FrameRefused,
    PayloadMissing,
    ReferenceRefused,
)
from stagewire_writes.offload import Offload
from stagewire_writes.options import SessionOptions
from stagewire_writes.protocol import Ack, Frames, Reference, key_of
from stagewire_writes.remote import Remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from stagewire_writes.outgoing import Batch, Outgoing

FLIPPED = 5
"""How often a frame that changed on its way is sent again."""

PAUSE = 0.2
"""Seconds between two attempts to send what could not be sent."""

DEGRADING = (ReferenceRefused, PayloadMissing, ChecksumMismatch, FrameRefused)
"""Answers of an agent that tell against references, not against the session."""


class Sending:
    """Sends batches. Belongs to one event loop.

    Args:
        remote: Asks agents.
        keys: Owns the temporary keys.
        lease: The controller's shared lease.
        source: The controller's generation.
        options: Bounds and timeouts.
        offload: Runs what blocks.
        clock: For how long nothing was acknowledged.
    """

    def __init__(
        self,
        remote: Remote,
        keys: TemporaryKeys,
        lease: SharedLease,
        *,
        source: str,
        options: SessionOptions,
        offload: Offload,
        clock: Callable[[], float],
    ) -> None:
        self._remote = remote
        self._keys = keys
        self._lease = lease
        self._source = source
        self._options = options
        self._offload = offload
        self._clock = clock

    async def send(self, session: Outgoing, batch: Batch) -> None:
        """Send a batch until it is acknowledged. Raises why that cannot be."""
        batch.checksums = await self._offload(checksums, [batch.frame(i) for i in range(len(batch.lengths))])
        session.note_checksums(batch)
        written = None
        if session.raw is None:
            written = await self._by_reference(session, batch)
        raw = written is None
        if written is None:
            written = await self._raw(session, batch)
        session.settle(batch, written, raw=raw)

    async def _by_reference(self, session: Outgoing, batch: Batch) -> int | None:
        """Send the batch by reference; on failure the session goes on without (WS-9), and ``None`` is returned."""
        try:
            return await self._refer(session, batch, await self._lease.acquire())
        except TooManyKeys:
            return None  # this batch only (TK-3)
        except DEGRADING as error:
            session.degrade(describe(error))
        except (KVError, LeaseLost, Closed, TransportError) as error:
            session.degrade(describe(error))
        return None

    async def _refer(self, session: Outgoing, batch: Batch, lease: Lease) -> int:
        nonce = secrets.token_hex(8)
        frames = Frames(session.name, self._source, batch.sequence, batch.offset, batch.lengths, batch.checksums)
        key = key_of(frames, nonce, lease.generation)
        with self._keys.begin_put(key, batch.view, lease) as ticket:
            await ticket.stored()
            reference = Reference(
                session.name,
                self._source,
                batch.sequence,
                batch.offset,
                batch.lengths,
                batch.checksums,
                key,
                nonce,
                lease.generation,
            )
            timeout = self._options.reference_timeout.of(batch.size)
            ack = await self._remote.call_data(session.node, "reference", reference, Ack, timeout=timeout)
        return ack.written

    async def _raw(self, session: Outgoing, batch: Batch) -> int:
        """Send the batch frame by frame; the agent knows the frames that it has by their numbers."""
        written, offset = 0, batch.offset
        for index, (length, crc) in enumerate(zip(batch.lengths, batch.checksums, strict=True)):
            head = Frames(session.name, self._source, batch.sequence + index, offset, [length], [crc])
            written = (await self._until_acknowledged(session, head, batch.frame(index))).written
            offset += length
        return written

    async def _until_acknowledged(self, session: Outgoing, head: Frames, frame: memoryview) -> Ack:
        timeout = self._options.raw_timeout.of(len(frame))
        flipped = 0
        began = self._clock()
        while True:
            try:
                return await self._remote.call_data(session.node, "raw", head, Ack, timeout=timeout, data=[frame])
            except ChecksumMismatch:
                flipped += 1
                if flipped >= FLIPPED:
                    raise
            except Retryable as error:
                if self._clock() - began > self._options.control_timeout:
                    raise AgentLost(f"{session.path!r}: frame {head.sequence} is not acknowledged: {error}") from error
                await asyncio.sleep(PAUSE)
            if session.failure is not None:
                raise session.failure
            session.traffic.retries += 1
