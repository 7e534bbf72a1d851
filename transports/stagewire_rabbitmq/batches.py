"""The asyncio face over mailboxes (`BatchTransport`): confirmed puts, acknowledged takes, request and reply.

It shares the wires with the chunks: the waiting is done on the event loop, the work on the wire's thread. One batch is
one AMQP message, so it arrives whole or not at all.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from stagewire import DEAD_SUFFIX, Closed, Delivery, Message, Permanent, Retryable, TransportFull
from stagewire_rabbitmq.boxes import Boxes
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.delivery import Take
from stagewire_rabbitmq.feedback import Feedback
from stagewire_rabbitmq.grants import Told
from stagewire_rabbitmq.handled import Handled
from stagewire_rabbitmq.inlet import post
from stagewire_rabbitmq.lanes import Lane, single
from stagewire_rabbitmq.letters import pack_batch, pack_letter
from stagewire_rabbitmq.mailbox import Letter
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.posting import Posting
from stagewire_rabbitmq.publisher import Publisher
from stagewire_rabbitmq.replies import Replies
from stagewire_rabbitmq.room import Room
from stagewire_rabbitmq.topology import mailbox_queue, reply_queue
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

QUIET = 5.0
"""Seconds without news after which a sender that waits for room looks whether the queue is empty."""

PURGE = 1_000_000
SHARE = 4


class RabbitMQBatches:
    """A `BatchTransport`. Every method belongs to the event loop on which the transport was opened."""

    def __init__(
        self,
        options: RabbitMQOptions,
        wires: tuple[Wire, Wire],
        publisher: Publisher,
        feedback: Feedback,
        *,
        log: FilteringBoundLogger,
    ) -> None:
        publishing, self._consuming = wires
        self._options = options
        self._publisher = publisher
        self._feedback = feedback
        self._posting = Posting(publishing, publisher)
        self._counters: dict[str, Counters] = {}
        self._outlets: dict[str, tuple[Lane, Room]] = {}
        handled = Handled(max(1, options.mailbox_messages // SHARE), feedback.tell)
        self._boxes = Boxes(options, self._consuming, self._counter, handled=handled, put_dead=self._put_dead, log=log)
        self._replies: Replies | None = None
        self._reply_lane = Lane(None, single, 1, 0, Counters())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def open(self) -> None:
        """Belong to the running event loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._publisher.open_lane(self._reply_lane)

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        """Put all messages or none; see `BatchTransport.put_batch`. Cancelled, it may have put them."""
        self._check()
        if messages:
            await self._put(mailbox, messages, self._options.put_timeout if timeout is None else timeout)

    def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AbstractAsyncContextManager[Sequence[Delivery]]:
        """Take messages for the length of a block; see `BatchTransport.get_batch`. Cancelled, it has taken none."""
        if limit < 1:
            raise ValueError(f"limit is {limit}: take at least one message")
        return Take(self, mailbox, limit, timeout)

    async def request(self, mailbox: str, message: Message, *, timeout: float) -> Message:
        """Put a message and wait for its answer; see `BatchTransport.request`."""
        self._check()
        replies = self._reply_box()
        correlation, answer = replies.expect()
        headers = {"reply-to": replies.queue.name, "correlation-id": correlation}
        try:
            async with asyncio.timeout(timeout):
                await replies.ready.wait()
                await self._put(mailbox, [message], timeout, headers=headers)
                return await answer
        except TimeoutError:
            raise Retryable(
                f"no reply from mailbox {mailbox!r} within {timeout:g} s: is somebody serving it?"
            ) from None
        finally:
            replies.forget(correlation)

    async def purge(self, mailbox: str) -> int:
        """Drop what waits in the mailbox's queue and here; returns how many messages that were."""
        self._check()
        box = self._boxes.box(mailbox)
        count = 0
        while True:
            async with self.get_batch(mailbox, limit=PURGE, timeout=0.2) as batch:
                count += len(batch)
            if not box.mailbox.waiting and not await box.inlet.backlog():
                return count

    async def take(self, name: str, limit: int, timeout: float | None) -> list[Letter]:
        """Wait for letters of a mailbox, in hand until settled or given back."""
        self._check()
        return await self._boxes.take(name, limit, timeout)

    def settle(self, name: str, letters: Sequence[Letter]) -> None:
        """Acknowledge what was handled."""
        self._boxes.settle(name, letters)

    def give_back(self, name: str, letters: Sequence[Letter], reason: str) -> None:
        """Return what was not handled."""
        self._boxes.give_back(name, letters, reason)

    async def reply(self, queue: str, correlation: str, message: Message) -> None:
        """Send an answer; when its queue is gone, so is who asked."""
        body = pack_batch([message], time.time())
        try:
            await self._posting.put(
                self._reply_lane, body, self._options.put_timeout, to=queue, headers={"correlation-id": correlation}
            )
        except Permanent:
            self._reply_lane.counters.dropped += 1

    async def close(self) -> None:
        """Wake all who wait, end burials, stop consuming. Idempotent."""
        self._closed = True
        for _lane, room in self._outlets.values():
            room.fail(Closed("the transport was closed"))
        await self._boxes.close(self._options.close_timeout)
        if self._replies is not None:
            self._replies.close()

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the counters per mailbox."""
        return {name: counters.snapshot() for name, counters in list(self._counters.items())}

    async def _put(self, mailbox: str, messages: Sequence[Message], timeout: float, **properties: Any) -> None:
        """Put a batch into the mailbox once there is room for it."""
        lane, room = self._outlet(mailbox)
        deadline = self._now() + timeout
        number = await self._wait_for_room(lane, room, len(messages), deadline)
        try:
            body = pack_batch(messages, time.time(), number)
            left = deadline - self._now()
            await self._posting.put(lane, body, left, reply_to=self._feedback.address, **properties)
        except (TransportFull, Permanent):
            room.free([number])
            raise
        self._count(lane, len(messages), len(body))

    async def _put_dead(self, mailbox: str, message: Message) -> None:
        lane, _room = self._outlet(mailbox)
        body = pack_letter(message, time.time())
        await self._posting.put(lane, body, self._options.put_timeout)
        self._count(lane, 1, len(body))

    async def _wait_for_room(self, lane: Lane, room: Room, count: int, deadline: float) -> int:
        """Wait for room; when nothing is heard although the queue is empty, what was told must have been lost."""
        began = self._now()
        try:
            while True:
                freed, left = room.freed, deadline - self._now()
                try:
                    return await room.take(count, min(left, QUIET))
                except TransportFull:
                    lane.counters.full += 1
                    if left <= QUIET:
                        raise
                if room.freed == freed and await self._posting.depth(lane, QUIET) == 0:
                    room.write_off()
        finally:
            lane.counters.blocked_seconds += self._now() - began

    @staticmethod
    def _count(lane: Lane, messages: int, size: int) -> None:
        lane.counters.puts += messages
        lane.counters.bytes += size

    def _check(self) -> None:
        if self._closed:
            raise Closed("the transport was closed")
        if self._loop is not asyncio.get_running_loop():
            state = (
                "is not open: await transport.open() first" if self._loop is None else "belongs to another event loop"
            )
            raise Permanent(f"the transport {state}")

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _counter(self, name: str) -> Counters:
        return self._counters.setdefault(name, Counters())

    def _outlet(self, mailbox: str) -> tuple[Lane, Room]:
        outlet = self._outlets.get(mailbox)
        if outlet is None:
            queue = mailbox_queue(self._options, mailbox)
            lane = self._publisher.open_lane(Lane(queue, single, 1, 0, self._counter(mailbox)))
            room = Room(mailbox, self._options.mailbox_messages)
            outlet = self._outlets[mailbox] = lane, room
            if not mailbox.endswith(DEAD_SUFFIX):
                self._feedback.listen(queue.name, lambda told: self._heard(room, told))
        return outlet

    def _heard(self, room: Room, told: Told) -> None:
        """On the wire's thread."""
        if self._loop is not None:
            post(self._loop, lambda: room.free(told.handled))

    def _reply_box(self) -> Replies:
        if self._replies is None:
            self._replies = Replies(self._consuming, reply_queue(self._options, secrets.token_hex(8)))
        return self._replies
