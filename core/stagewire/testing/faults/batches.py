"""A batch transport that goes wrong on purpose, and a whole transport of faulty faces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TypeVar

from stagewire.errors import Retryable
from stagewire.spec.transport import BatchTransport, ChunkLink, ChunkTransport, Delivery, Message, Transport
from stagewire.testing.faults.chunks import FaultyTransport
from stagewire.testing.faults.plan import Call, Fault, FaultPlan, Rule

T = TypeVar("T")


class _AcknowledgementLost(Exception):
    """Ends the inner block so that the messages come again."""


class FaultyBatchTransport:
    """Wraps a `BatchTransport` and does to its calls what the plan says, by mailbox.

    On ``get`` a drop loses the batch, a duplicate lets it come again after it was handled, and reorder turns it round.
    """

    def __init__(self, inner: BatchTransport, plan: FaultPlan) -> None:
        self.inner = inner
        self.plan = plan
        self._overtaken: list[tuple[str, Sequence[Message]]] = []

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        """Put messages, or not, or twice, as planned."""
        call = Call("put", mailbox)
        rule = self.plan.choose(call)
        if rule is not None and rule.fault is Fault.REORDER:
            self._overtaken.append((mailbox, messages))
        elif rule is None or rule.fault is not Fault.DROP:
            await self._troubled(rule, call, lambda: self._deliver(mailbox, messages, timeout))

    @asynccontextmanager
    async def _get(self, mailbox: str, limit: int, timeout: float | None) -> AsyncIterator[Sequence[Delivery]]:
        call = Call("get", mailbox)
        rule = self.plan.choose(call)
        fault = rule.fault if rule is not None else None
        if rule is not None and fault is not Fault.FAIL_AFTER:
            await self._troubled(rule, call, _nothing)
        lost = fault in (Fault.DUPLICATE, Fault.FAIL_AFTER)
        with suppress(_AcknowledgementLost):
            async with self.inner.get_batch(mailbox, limit=limit, timeout=timeout) as batch, _acknowledging(lost=lost):
                yield [] if fault is Fault.DROP else [*reversed(batch)] if fault is Fault.REORDER else batch
        if rule is not None and fault is Fault.FAIL_AFTER:
            raise rule.error(call)

    def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AbstractAsyncContextManager[Sequence[Delivery]]:
        """Take messages, as planned."""
        return self._get(mailbox, limit, timeout)

    async def request(self, mailbox: str, message: Message, *, timeout: float) -> Message:
        """Ask, as planned; a dropped request is never answered."""
        call = Call("request", mailbox)
        rule = self.plan.choose(call)
        if rule is not None and rule.fault is Fault.DROP:
            raise Retryable(f"no reply from mailbox {mailbox!r}: the request was dropped")
        return await self._troubled(rule, call, lambda: self.inner.request(mailbox, message, timeout=timeout))

    async def purge(self, mailbox: str) -> int:
        """Drop what waits in the mailbox; never goes wrong."""
        return await self.inner.purge(mailbox)

    async def flush(self) -> None:
        """Put what waits to be overtaken."""
        overtaken, self._overtaken = self._overtaken, []
        for mailbox, messages in overtaken:
            await self.inner.put_batch(mailbox, messages)

    async def _deliver(self, mailbox: str, messages: Sequence[Message], timeout: float | None) -> None:
        await self.inner.put_batch(mailbox, messages, timeout=timeout)
        await self.flush()

    async def _troubled(self, rule: Rule | None, call: Call, act: Callable[[], Awaitable[T]]) -> T:
        fault = rule.fault if rule is not None else None
        if rule is not None and fault is Fault.FAIL:
            raise rule.error(call)
        if rule is not None and fault is Fault.DELAY:
            await asyncio.sleep(rule.seconds)
        elif fault is Fault.HANG:
            await self.plan.gate.hold_task()
        result = await act()
        if fault is Fault.DUPLICATE:
            result = await act()
        if rule is not None and fault is Fault.FAIL_AFTER:
            raise rule.error(call)
        return result


@asynccontextmanager
async def _acknowledging(*, lost: bool) -> AsyncIterator[None]:
    """End a block that ended well as if its consumer had died, if the acknowledgement is to be lost."""
    yield
    if lost:
        raise _AcknowledgementLost


async def _nothing() -> None:
    return


class FaultyFaces:
    """A whole `Transport` whose faces go wrong as one plan says; see `with_faults`."""

    def __init__(self, inner: Transport, plan: FaultPlan) -> None:
        self.inner = inner
        self.plan = plan
        self._chunks: list[FaultyTransport] = []
        self._batches: FaultyBatchTransport | None = None

    async def open(self) -> None:
        """Open what is wrapped."""
        await self.inner.open()

    def chunks(self, link: ChunkLink) -> ChunkTransport:
        """Return a faulty face of the link."""
        face = FaultyTransport(self.inner.chunks(link), self.plan)
        self._chunks.append(face)
        return face

    def batches(self) -> BatchTransport:
        """Return the faulty batch face."""
        if self._batches is None:
            self._batches = FaultyBatchTransport(self.inner.batches(), self.plan)
        return self._batches

    async def close(self) -> None:
        """Let go of calls that hang, and close what is wrapped; messages still to be overtaken are lost."""
        self.plan.release()
        await self.inner.close()

    def stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return the counters of what is wrapped."""
        return self.inner.stats()


def with_faults(transport: Transport, plan: FaultPlan) -> FaultyFaces:
    """Return the transport with both faces going wrong as the plan says."""
    return FaultyFaces(transport, plan)
