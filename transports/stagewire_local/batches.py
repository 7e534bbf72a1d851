"""The asyncio face: named mailboxes on the event loop that opened the transport. Payloads travel by reference."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from stagewire import (
    DEAD_DELIVERIES,
    DEAD_MAILBOX,
    DEAD_REASON,
    DEAD_SUFFIX,
    Clock,
    Closed,
    Delivery,
    Message,
    Permanent,
    Retryable,
    TransportFull,
    bounded,
    describe,
    emit,
)
from stagewire.codec import weigh
from stagewire_local.mailbox import Envelope, Mailbox
from stagewire_local.options import LocalOptions
from stagewire_local.paths import MakeLog

REASON_LENGTH = 500
"""The most characters of the reason in a dead letter's header."""


class LocalDelivery:
    """A message in hand."""

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope

    @property
    def message(self) -> Message:
        """The message that was put."""
        return self._envelope.message

    @property
    def redelivered(self) -> bool:
        """Whether an earlier consumer gave it back."""
        return self._envelope.failures > 0

    async def reply(self, payload: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer a request; the first answer counts."""
        waiter = self._envelope.reply
        if waiter is not None and not waiter.done():
            waiter.set_result(Message(payload, headers or {}))


class _Take(AbstractAsyncContextManager[Sequence[Delivery]]):
    """Messages in hand for the length of a block. Leaving it never awaits, so no cancel can cut it."""

    def __init__(self, owner: LocalBatches, mailbox: Mailbox, limit: int, timeout: float | None) -> None:
        self._owner = owner
        self._mailbox = mailbox
        self._limit = limit
        self._timeout = timeout
        self._envelopes: list[Envelope] = []

    async def __aenter__(self) -> Sequence[Delivery]:
        self._envelopes = await self._mailbox.get(self._limit, self._timeout)
        return [LocalDelivery(envelope) for envelope in self._envelopes]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        envelopes, self._envelopes = self._envelopes, []
        if error is None:
            self._mailbox.settle(envelopes)
        else:
            self._owner.give_back(self._mailbox, envelopes, describe(error))


class LocalBatches:
    """A `BatchTransport` over mailboxes in this process."""

    def __init__(self, options: LocalOptions, clock: Clock, log: MakeLog) -> None:
        self._options = options
        self._clock = clock
        self._log = log
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._mailboxes: dict[str, Mailbox] = {}

    def open(self) -> None:
        """Belong to the running event loop from now on."""
        self._loop = asyncio.get_running_loop()

    async def put_batch(self, mailbox: str, messages: Sequence[Message], *, timeout: float | None = None) -> None:
        """Put all messages or none; see `BatchTransport.put_batch`. Cancelled, it may have put them."""
        if messages:
            await self._put(self._mailbox(mailbox), [Envelope(m, _weigh(m)) for m in messages], timeout)

    def get_batch(
        self, mailbox: str, *, limit: int = 1, timeout: float | None = None
    ) -> AbstractAsyncContextManager[Sequence[Delivery]]:
        """Take messages for the length of a block; see `BatchTransport.get_batch`. Cancelled, it has taken none."""
        if limit < 1:
            raise ValueError(f"limit is {limit}: take at least one message")
        return _Take(self, self._mailbox(mailbox), limit, timeout)

    async def request(self, mailbox: str, message: Message, *, timeout: float) -> Message:
        """Put a message and wait for its answer; see `BatchTransport.request`.

        A request that is given up before anybody took it is withdrawn. Raises `Permanent` if it became a dead letter.
        """
        box = self._mailbox(mailbox)
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        envelope = Envelope(message, _weigh(message), reply)
        try:
            async with asyncio.timeout(timeout):
                await self._put(box, [envelope], timeout)
                return await reply
        except TimeoutError:
            raise Retryable(
                f"no reply from mailbox {mailbox!r} within {timeout:g} s: is somebody serving it?"
            ) from None
        finally:
            if reply.done() and not reply.cancelled():
                reply.exception()  # marks it as seen, should a cancel have come between
            else:
                reply.cancel()
                box.withdraw(envelope)

    async def purge(self, mailbox: str) -> int:
        """Drop what waits in the mailbox; who waits for a reply to it is told."""
        purged = self._mailbox(mailbox).purge()
        for envelope in purged:
            _fail(envelope, Retryable(f"the request was purged from mailbox {mailbox!r}"))
        return len(purged)

    def close(self) -> None:
        """Wake all who wait and report what nobody took. Idempotent."""
        self._closed = True
        for name, mailbox in self._mailboxes.items():
            left = mailbox.close()
            for envelope in left:
                _fail(envelope, Closed(f"the transport was closed before mailbox {name!r} was served"))
            if left:
                size = sum(envelope.size for envelope in left)
                emit(self._log(), "transport.unread", mailbox=name, messages=len(left), bytes=size)

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the counters per mailbox."""
        return {name: mailbox.stats() for name, mailbox in list(self._mailboxes.items())}

    def give_back(self, mailbox: Mailbox, envelopes: Sequence[Envelope], reason: str) -> None:
        """Return messages that were not handled; those that failed too often become dead letters."""
        alive: list[Envelope] = []
        for envelope in envelopes:
            envelope.failures += 1
            spent = envelope.failures > self._options.redeliveries and not mailbox.name.endswith(DEAD_SUFFIX)
            (self._bury(mailbox, envelope, reason) if spent else alive.append(envelope))
        mailbox.give_back(alive)

    def _bury(self, mailbox: Mailbox, envelope: Envelope, reason: str) -> None:
        reason = bounded(reason, REASON_LENGTH)
        headers = {
            **envelope.message.headers,
            DEAD_REASON: reason,
            DEAD_MAILBOX: mailbox.name,
            DEAD_DELIVERIES: str(envelope.failures),
        }
        mailbox.settle([envelope])
        mailbox.counters.dead += 1
        letter = Envelope(Message(envelope.message.payload, headers), envelope.size)
        dropped = self._box(mailbox.name + DEAD_SUFFIX).force(letter)
        emit(
            self._log(),
            "transport.dead_letter",
            mailbox=mailbox.name,
            deliveries=envelope.failures,
            cause=reason,
            older_dropped=dropped,
        )
        _fail(
            envelope,
            Permanent(f"mailbox {mailbox.name!r} gave the request up after {envelope.failures} tries: {reason}"),
        )

    async def _put(self, box: Mailbox, envelopes: Sequence[Envelope], timeout: float | None) -> None:
        if not box.could_hold(envelopes):
            raise Permanent(
                f"{len(envelopes)} messages of {sum(e.size for e in envelopes)} bytes can never fit into mailbox"
                f" {box.name!r}: put smaller batches, or raise the transport's mailbox_messages or mailbox_bytes"
            )
        seconds = self._options.put_timeout if timeout is None else timeout
        if not await box.put(envelopes, seconds):
            box.counters.full += 1
            raise TransportFull(
                f"mailbox {box.name!r} stayed full for {seconds:g} s: its consumers are behind, or gone"
            )

    def _mailbox(self, name: str) -> Mailbox:
        if self._closed:
            raise Closed("the transport was closed")
        if self._loop is not asyncio.get_running_loop():
            state = (
                "is not open: await transport.open() first"
                if self._loop is None
                else "was opened on another event loop"
            )
            raise Permanent(f"the transport {state}; mailboxes belong to the event loop that opened them")
        return self._box(name)

    def _box(self, name: str) -> Mailbox:
        box = self._mailboxes.get(name)
        if box is None:
            options = self._options
            box = Mailbox(name, options.mailbox_messages, options.mailbox_bytes, self._clock)
            self._mailboxes[name] = box
        return box


def _weigh(message: Message) -> int:
    return weigh(message.payload) + (weigh(dict(message.headers)) if message.headers else 0)


def _fail(envelope: Envelope, error: Exception) -> None:
    if envelope.reply is not None and not envelope.reply.done():
        envelope.reply.set_exception(error)
