"""The transport suite finds what is broken: each of these breaks one promise, and the named test must fail for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

import pytest

from stagewire import (
    BatchTransport,
    ChunkKey,
    ChunkLink,
    ChunkMessage,
    ChunkTransport,
    Delivery,
    Message,
    TransportFull,
)
from stagewire.testing import Ends, Fault, FaultPlan, ManualClock, TransportLimits, TransportSuite, with_faults
from stagewire_local import LocalOptions, LocalTransport
from stagewire_local.chunks import LocalChunks


class Impatient(TransportSuite):
    """The suite over a local transport that a subclass breaks."""

    patience: ClassVar[float] = 0.3
    moment: ClassVar[float] = 0.005
    limits: ClassVar[TransportLimits] = TransportLimits(silent_requests=200, large=4096)
    changes: ClassVar[dict[str, Any]] = {}

    def transports(self) -> AbstractAsyncContextManager[Ends]:
        self.clock = ManualClock()
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Ends]:
        limits = self.limits
        options = {
            "request_chunks": limits.request_chunks,
            "mailbox_messages": limits.mailbox_messages,
            "redeliveries": limits.redeliveries,
            "expires": limits.expires,
        }
        transport = LocalTransport(LocalOptions.model_validate({**options, **self.changes}), clock=self.clock)
        broken: Any = self.broken(transport)
        await transport.open()
        yield Ends(broken, broken)
        await transport.close()

    def broken(self, transport: LocalTransport) -> object:
        return transport

    async def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)


class Wrapped:
    """A transport whose faces are wrapped."""

    def __init__(
        self,
        inner: LocalTransport,
        chunks: Callable[[ChunkTransport], object] = lambda face: face,
        batches: Callable[[BatchTransport], object] = lambda face: face,
    ) -> None:
        self._inner = inner
        self._wrap_chunks = chunks
        self._batches = batches(inner.batches())

    def chunks(self, link: ChunkLink) -> object:
        return self._wrap_chunks(self._inner.chunks(link))

    def batches(self) -> object:
        return self._batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Face:
    """Passes everything on; subclasses break one method."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class ChangesMessages(Face):
    def get(self, key: ChunkKey) -> ChunkMessage | None:
        message: ChunkMessage | None = self.inner.get(key)
        return None if message is None else {"data": message["data"], "finished": message["finished"]}


class HandsOutTwice(Face):
    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.last: dict[ChunkKey, ChunkMessage] = {}

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        message = self.inner.get(key)
        if message is None:
            return self.last.get(key)
        self.last[key] = message
        return self.last[key]


class GivesOldestFirst(Face):
    def get(self, key: ChunkKey) -> ChunkMessage | None:
        for number in range(key.chunk + 1):
            message: ChunkMessage | None = self.inner.get(ChunkKey(key.request, key.stage, number))
            if message is not None:
                return message
        return None


class ForgetsSmallRequests(Face):
    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        self.inner.put(ChunkKey(key.request.split("_")[0], key.stage, key.chunk), message)

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        message: ChunkMessage | None = self.inner.get(ChunkKey(key.request.split("_")[0], key.stage, key.chunk))
        return message


class IgnoresCleanup(Face):
    def cleanup(self, request_id: str) -> None:
        pass


class CleansUpTooMuch(Face):
    def __init__(self, inner: LocalChunks) -> None:
        super().__init__(inner)
        self.reader = LocalChunks(ChunkLink("", 0, 0), inner._store, inner._path)

    def cleanup(self, request_id: str) -> None:
        self.reader.cleanup(request_id)


class BuriesNames(Face):
    """Drops whatever comes for a request once it was cleaned up."""

    buried: ClassVar[set[str]] = set()

    def cleanup(self, request_id: str) -> None:
        self.buried.add(request_id)
        self.inner.cleanup(request_id)

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        if key.request not in self.buried:
            self.inner.put(key, message)


class SlowGet(Face):
    def get(self, key: ChunkKey) -> ChunkMessage | None:
        time.sleep(0.006)
        message: ChunkMessage | None = self.inner.get(key)
        return message


class FailsTogether(Face):
    def put_many(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        results: list[Exception | None] = self.inner.put_many(items)
        bad = next((result for result in results if result is not None), None)
        return [bad] * len(results)


class TurnsRuns(Face):
    def get_many(self, key: ChunkKey, limit: int) -> list[ChunkMessage]:
        messages: list[ChunkMessage] = self.inner.get_many(key, limit)
        return messages[::-1]


class ViewsLargeBytes(Face):
    def get(self, key: ChunkKey) -> ChunkMessage | None:
        message: ChunkMessage | None = self.inner.get(key)
        if message is not None and isinstance(message["data"], bytes) and len(message["data"]) > 1000:
            message["data"] = memoryview(message["data"])
        return message


class NeverCloses(Face):
    def close(self) -> None:
        pass


class OneForAll(Face):
    """One bound for all requests: head-of-line blocking."""

    held: ClassVar[int] = 0

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        if OneForAll.held > 50:
            raise TransportFull("full")
        OneForAll.held += 1
        self.inner.put(key, message)


class Boxes(Face):
    """Passes mailboxes on; subclasses break one method."""

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        await self.inner.put_batch(mailbox, messages, timeout=timeout)

    @asynccontextmanager
    async def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AsyncIterator[Sequence[Delivery]]:
        async with self.inner.get_batch(mailbox, limit=limit, timeout=timeout) as batch:
            yield batch


class LosesHeaders(Boxes):
    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        await self.inner.put_batch(mailbox, [Message(message.payload) for message in messages], timeout=timeout)


class AcknowledgesAtOnce(Boxes):
    @asynccontextmanager
    async def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AsyncIterator[Sequence[Delivery]]:
        async with self.inner.get_batch(mailbox, limit=limit, timeout=timeout) as batch:
            pass
        yield batch


class NeverAcknowledges(Boxes):
    @asynccontextmanager
    async def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AsyncIterator[Sequence[Delivery]]:
        manager = self.inner.get_batch(mailbox, limit=limit, timeout=timeout)
        yield await manager.__aenter__()
        await manager.__aexit__(KeyError, KeyError(), None)


class PutsBackwards(Boxes):
    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        await self.inner.put_batch(mailbox, messages[::-1], timeout=timeout)


class PutsOneByOne(Boxes):
    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        for message in messages:
            await self.inner.put_batch(mailbox, [message], timeout=timeout)


class RefusesAtOnce(Boxes):
    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        await self.inner.put_batch(mailbox, messages, timeout=0)


class OneLock(Boxes):
    """A put that waits for room keeps every other put waiting."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.lock = asyncio.Lock()

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        async with self.lock:
            await self.inner.put_batch(mailbox, messages, timeout=timeout)


class NeverEmpty(Boxes):
    @asynccontextmanager
    async def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AsyncIterator[Sequence[Delivery]]:
        async with asyncio.timeout(1), self.inner.get_batch(mailbox, limit=limit) as batch:
            yield batch


class SwallowsCancels(Boxes):
    """A getter that is cancelled goes on in the background and takes the next message along."""

    @asynccontextmanager
    async def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AsyncIterator[Sequence[Delivery]]:
        manager = self.inner.get_batch(mailbox, limit=limit, timeout=timeout)
        task = asyncio.create_task(manager.__aenter__())
        yield await asyncio.shield(task)
        await manager.__aexit__(None, None, None)


class NeverAnswers(Boxes):
    async def request(self, mailbox: str, message: Message, *, timeout: float) -> Message:
        await self.inner.put_batch(mailbox, [message])
        return Message(None, {"how": "not at all"})


class PurgesNothing(Boxes):
    async def purge(self, mailbox: str) -> int:
        return 0


def chunks(wrap: Callable[[Any], object]) -> type[Impatient]:
    class Broken(Impatient):
        def broken(self, transport: LocalTransport) -> object:
            return Wrapped(transport, chunks=wrap)

    return Broken


def batches(wrap: Callable[[Any], object]) -> type[Impatient]:
    class Broken(Impatient):
        def broken(self, transport: LocalTransport) -> object:
            return Wrapped(transport, batches=wrap)

    return Broken


def faults(fault: Fault, on: Any = "put", times: int | None = 1) -> type[Impatient]:
    class Broken(Impatient):
        def broken(self, transport: LocalTransport) -> object:
            return with_faults(transport, FaultPlan().add(fault, on=on, times=times))

    return Broken


def options(**changed: Any) -> type[Impatient]:
    class Broken(Impatient):
        changes: ClassVar[dict[str, Any]] = changed

    return Broken


def without(*counters: str) -> type[Impatient]:
    class Uncounted(Wrapped):
        def stats(self) -> dict[str, dict[str, float]]:
            stats = self._inner.stats()
            return {k: {n: v for n, v in each.items() if n not in counters} for k, each in stats.items()}

    class Broken(Impatient):
        def broken(self, transport: LocalTransport) -> object:
            return Uncounted(transport)

    return Broken


BROKEN: list[tuple[str, type[Impatient]]] = [
    ("tr1_what_was_put_arrives_unchanged", chunks(ChangesMessages)),
    ("tr1_what_was_put_arrives_unchanged", faults(Fault.DROP)),
    ("tr1_threads_put_at_once_and_nothing_is_lost", faults(Fault.DROP)),
    ("tr2_a_chunk_is_handed_out_once", chunks(HandsOutTwice)),
    ("tr3_chunks_are_taken_in_any_order", chunks(GivesOldestFirst)),
    ("tr3_requests_with_similar_names_never_mix", chunks(ForgetsSmallRequests)),
    ("tr3_a_repeated_put_is_dropped_before_and_after_it_was_taken", chunks(HandsOutTwice)),
    ("ch7_a_finished_request_id_is_used_again_at_once", chunks(BuriesNames)),
    ("tr4_requests_that_nobody_reads_do_not_stall_the_next", options(requests=100)),
    ("tr4_requests_that_nobody_reads_do_not_stall_the_next", chunks(OneForAll)),
    ("tr5_a_request_that_nobody_reads_is_bounded", options(request_chunks=100)),
    ("tr6_chunks_that_nobody_asks_for_expire", options(expires=100)),
    ("tr6_what_comes_after_a_cleanup_is_dropped_until_the_next_run", chunks(IgnoresCleanup)),
    ("tr6_what_comes_after_a_cleanup_is_dropped_until_the_next_run", chunks(BuriesNames)),
    ("tr6_a_cleanup_before_anything_came_loses_nothing", chunks(BuriesNames)),
    ("tr6_a_cleanup_by_the_sender_loses_nothing_that_was_put", chunks(CleansUpTooMuch)),
    ("tr8_get_never_waits", chunks(SlowGet)),
    ("tr9_chunks_put_together_have_one_result_each", chunks(FailsTogether)),
    ("tr9_chunks_taken_together_come_in_order", chunks(TurnsRuns)),
    ("tr10_small_and_large_payloads_arrive_alike", chunks(ViewsLargeBytes)),
    ("tr11_a_closed_face_says_so", chunks(NeverCloses)),
    ("tr12_an_edge_is_counted", without("reconnects")),
    ("tr1_messages_arrive_with_their_headers", batches(LosesHeaders)),
    ("tr2_handled_messages_are_gone_and_others_come_again", batches(AcknowledgesAtOnce)),
    ("tr2_handled_messages_are_gone_and_others_come_again", batches(NeverAcknowledges)),
    ("tr2_a_cancelled_handler_gives_its_messages_back", batches(AcknowledgesAtOnce)),
    ("tr2_a_getter_cancelled_while_it_waits_takes_nothing_along", batches(SwallowsCancels)),
    ("tr2_a_request_is_answered", batches(NeverAnswers)),
    ("tr3_a_mailbox_keeps_the_order", batches(PutsBackwards)),
    ("tr3_what_was_given_back_comes_before_what_came_later", batches(AcknowledgesAtOnce)),
    ("tr4_a_full_mailbox_stalls_no_other", batches(OneLock)),
    ("tr5_a_full_mailbox_makes_the_producer_wait", batches(RefusesAtOnce)),
    ("tr5_a_full_mailbox_makes_the_producer_wait", options(mailbox_messages=100)),
    ("tr5_a_put_that_finds_no_room_in_time_has_put_nothing", batches(PutsOneByOne)),
    ("tr5_a_request_that_nobody_answers_ends_in_time", batches(NeverAnswers)),
    ("tr6_a_poisoned_message_ends_in_the_dead_letter_mailbox", options(redeliveries=1)),
    ("tr6_a_poisoned_message_ends_in_the_dead_letter_mailbox", options(redeliveries=9)),
    ("tr6_a_purged_mailbox_is_empty", batches(PurgesNothing)),
    ("tr8_get_batch_is_empty_after_its_timeout", batches(NeverEmpty)),
    ("tr9_messages_that_wait_are_taken_together", batches(PutsBackwards)),
    ("tr9_one_failed_batch_touches_no_other", batches(AcknowledgesAtOnce)),
    ("tr12_a_mailbox_is_counted", without("redeliveries")),
]


@pytest.mark.parametrize(("test", "suite"), BROKEN, ids=[f"{number}-{name}" for number, (name, _) in enumerate(BROKEN)])
def test_the_transport_suite_finds(test: str, suite: type[Impatient]) -> None:
    OneForAll.held = 0
    BuriesNames.buried.clear()
    getattr(Impatient(), f"test_{test}")()
    with pytest.raises(Exception):  # noqa: B017 — an assertion, a timeout, or whatever the broken one raises
        getattr(suite(), f"test_{test}")()
