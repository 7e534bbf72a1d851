"""The queue on which this process takes replies to its requests."""

from __future__ import annotations

import asyncio
import itertools

from stagewire import CodecError, Message
from stagewire_rabbitmq.inlet import Inlet, post
from stagewire_rabbitmq.letters import open_batch
from stagewire_rabbitmq.mailbox import MailFrame
from stagewire_rabbitmq.tap import Delivered, Tap
from stagewire_rabbitmq.topology import Queue
from stagewire_rabbitmq.wire import Wire

PREFETCH = 256


class Replies:
    """Matches replies with who waits for them. Belongs to one event loop.

    The queue is a normal one that expires soon after its process, not an exclusive one: that stays locked for as long
    as the broker believes in a half-open connection, and after a reconnect nobody could take the replies.
    """

    def __init__(self, wire: Wire, queue: Queue) -> None:
        self.queue = queue
        self.ready = asyncio.Event()
        self._numbers = itertools.count()
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._loop = asyncio.get_running_loop()
        self._inlet = Inlet(wire, queue, PREFETCH, arrive=self._arrive, lost=lambda _epoch: None, ready=self._declared)
        self._inlet.resume()

    def expect(self) -> tuple[str, asyncio.Future[Message]]:
        """Return a correlation id and the future of its reply."""
        correlation = str(next(self._numbers))
        future: asyncio.Future[Message] = self._loop.create_future()
        self._waiting[correlation] = future
        return correlation, future

    def forget(self, correlation: str) -> None:
        """Wait no longer."""
        future = self._waiting.pop(correlation)
        if future.done() and not future.cancelled():
            future.exception()
        else:
            future.cancel()

    def close(self) -> None:
        """Stop taking replies."""
        self._inlet.close()

    def _declared(self, _tap: Tap) -> None:
        post(self._loop, self.ready.set)

    def _arrive(self, delivered: Delivered) -> None:
        self._inlet.settle(MailFrame(delivered.tag, delivered.epoch, 0))
        future = self._waiting.get(delivered.headers.get("correlation-id", ""))
        if future is None or future.done():
            return
        try:
            (message,) = open_batch(delivered.body).messages
        except CodecError as error:
            future.set_exception(error)
        else:
            future.set_result(message)
