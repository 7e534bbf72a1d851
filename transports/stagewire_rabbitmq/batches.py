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
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from stagewire import (
    DEAD_DELIVERIES,
    DEAD_MAILBOX,
    DEAD_REASON,
    DEAD_SUFFIX,
    Closed,
    CodecError,
    Delivery,
    Message,
    Permanent,
    Retryable,
    bounded,
    emit,
)
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.delivery import Take
from stagewire_rabbitmq.inlet import Inlet
from stagewire_rabbitmq.lanes import Lane, single
from stagewire_rabbitmq.letters import open_batch, pack_batch
from stagewire_rabbitmq.mailbox import Letter, Mailbox, MailFrame
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.posting import Posting
from stagewire_rabbitmq.publisher import Publisher
from stagewire_rabbitmq.replies import Replies
from stagewire_rabbitmq.tap import Delivered
from stagewire_rabbitmq.topology import Queue, mailbox_queue, reply_queue
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

PREFETCH = 32
IDLE = 1.0
"""Seconds without a taker after which a mailbox is no longer consumed; what waits in it goes back to its queue."""

REASON_LENGTH = 500


@dataclass(slots=True)
class _Open:
    """A mailbox that is being taken from."""

    box: Mailbox
    inlet: Inlet
    idle: asyncio.TimerHandle | None = None


class RabbitMQBatches:
    """A `BatchTransport`. Every method belongs to the event loop on which the transport was opened."""

    def __init__(
        self,
        options: RabbitMQOptions,
        publishing: Wire,
        consuming: Wire,
        publisher: Publisher,
        log: FilteringBoundLogger,
    ) -> None:
        self._options = options
        self._log = log
        self._consuming = consuming
        self._publisher = publisher
        self._posting = Posting(publishing, publisher)
        self._counters: dict[str, Counters] = {}
        self._lanes: dict[str, Lane] = {}
        self._open: dict[str, _Open] = {}
        self._replies: Replies | None = None
        self._reply_lane = Lane(None, single, 1, 0, Counters())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._burying: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Belong to the running event loop from now on."""
        self._loop = asyncio.get_running_loop()
        self._publisher.open_lane(self._reply_lane)

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        """Put all messages or none; see `BatchTransport.put_batch`. Cancelled, it may have put them."""
        self._check()
        if not messages:
            return
        body = pack_batch(messages, time.time())
        lane = self._lane(mailbox)
        await self._posting.put(lane, body, self._options.put_timeout if timeout is None else timeout)
        lane.counters.puts += len(messages)
        lane.counters.bytes += len(body)

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
        lane = self._lane(mailbox)
        headers = {"reply-to": replies.queue.name, "correlation-id": correlation}
        try:
            async with asyncio.timeout(timeout):
                await replies.ready.wait()
                await self._posting.put(lane, pack_batch([message], time.time()), timeout, headers=headers)
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
        opened = self._opened(mailbox)
        count = 0
        async with self.get_batch(mailbox, limit=1_000_000, timeout=0.2) as batch:
            count += len(batch)
        while opened.box.waiting or await opened.inlet.backlog():
            async with self.get_batch(mailbox, limit=1_000_000, timeout=0.2) as batch:
                count += len(batch)
        return count

    async def take(self, name: str, limit: int, timeout: float | None) -> list[Letter]:
        """Wait for letters of a mailbox, in hand until settled or given back."""
        self._check()
        opened = self._opened(name)
        if opened.idle is not None:
            opened.idle.cancel()
            opened.idle = None
        opened.inlet.resume()
        if opened.inlet.tap.refused is not None:
            raise opened.inlet.tap.refused
        try:
            letters = await opened.box.take(limit, timeout)
        finally:
            self._watch_idle(name, opened)
        counters = opened.box.counters
        counters.gets += len(letters)
        counters.wait_seconds += sum(max(0.0, time.time() - letter.sent_at) for letter in letters)
        return letters

    def settle(self, name: str, letters: Sequence[Letter]) -> None:
        """Acknowledge what was handled."""
        self._open[name].box.settle(letters)

    def give_back(self, name: str, letters: Sequence[Letter], reason: str) -> None:
        """Return what was not handled; what failed too often becomes a dead letter (TR-6)."""
        alive: list[Letter] = []
        for letter in letters:
            letter.failures += 1
            spent = letter.failures > self._options.deliveries and not name.endswith(DEAD_SUFFIX)
            if spent and not self._closed:
                self._spawn(self._bury(name, letter, reason))
            else:
                alive.append(letter)
        self._open[name].box.give_back(alive)

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
        for opened in self._open.values():
            if opened.idle is not None:
                opened.idle.cancel()
            opened.box.fail(Closed("the transport was closed"))
            opened.inlet.close()
        if self._burying:
            await asyncio.wait(self._burying, timeout=self._options.close_timeout)
        if self._replies is not None:
            self._replies.close()

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the counters per mailbox."""
        return {name: counters.snapshot() for name, counters in list(self._counters.items())}

    def _check(self) -> None:
        if self._closed:
            raise Closed("the transport was closed")
        if self._loop is not asyncio.get_running_loop():
            state = (
                "is not open: await transport.open() first" if self._loop is None else "belongs to another event loop"
            )
            raise Permanent(f"the transport {state}")

    def _counter(self, name: str) -> Counters:
        return self._counters.setdefault(name, Counters())

    def _lane(self, mailbox: str) -> Lane:
        lane = self._lanes.get(mailbox)
        if lane is None:
            lane = Lane(mailbox_queue(self._options, mailbox), single, 1, 0, self._counter(mailbox))
            self._lanes[mailbox] = self._publisher.open_lane(lane)
        return lane

    def _opened(self, name: str) -> _Open:
        opened = self._open.get(name)
        if opened is None:
            queue = mailbox_queue(self._options, name)
            inlet = Inlet(
                self._consuming, queue, PREFETCH, arrive=partial(self._arrive, name), lost=partial(self._lost, name)
            )
            opened = self._open[name] = _Open(Mailbox(self._counter(name), inlet.settle), inlet)
        return opened

    def _reply_box(self) -> Replies:
        if self._replies is None:
            queue: Queue = reply_queue(self._options, secrets.token_hex(8))
            self._replies = Replies(self._consuming, queue)
        return self._replies

    def _lost(self, name: str, epoch: int) -> None:
        self._open[name].box.lose(epoch)

    def _arrive(self, name: str, delivered: Delivered) -> None:
        opened = self._open[name]
        headers = delivered.headers
        frame = MailFrame(delivered.tag, delivered.epoch, 1)
        try:
            messages, sent_at = open_batch(delivered.body)
        except CodecError as error:
            letter = Letter(Message(delivered.body), frame, 1, time.time())
            opened.box.counters.outstanding += 1
            self._spawn(self._bury(name, letter, str(error)))
            return
        frame.left = len(messages)
        failures = int(headers.get("x-delivery-count", delivered.redelivered))
        opened.box.add(
            [
                Letter(message, frame, failures, sent_at, headers.get("reply-to"), headers.get("correlation-id"))
                for message in messages
            ]
        )

    def _watch_idle(self, name: str, opened: _Open) -> None:
        if opened.idle is None and not opened.box.wanted and not self._closed:
            assert self._loop is not None
            opened.idle = self._loop.call_later(IDLE, self._go_idle, name)

    def _go_idle(self, name: str) -> None:
        opened = self._open[name]
        opened.idle = None
        if opened.box.wanted:
            return
        opened.inlet.pause()
        for frame in opened.box.empty():
            opened.inlet.settle(frame, keep=True)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._burying.add(task)
        task.add_done_callback(self._burying.discard)

    async def _bury(self, name: str, letter: Letter, reason: str) -> None:
        """Put a message into the dead-letter mailbox, and only then let go of it."""
        headers = {
            **letter.message.headers,
            DEAD_REASON: bounded(reason, REASON_LENGTH),
            DEAD_MAILBOX: name,
            DEAD_DELIVERIES: str(letter.failures),
        }
        emit(self._log, "transport.dead_letter", mailbox=name, deliveries=letter.failures, cause=headers[DEAD_REASON])
        await self.put_batch(name + DEAD_SUFFIX, [Message(letter.message.payload, headers)])
        box = self._open[name].box
        box.counters.dead += 1
        box.settle([letter])
