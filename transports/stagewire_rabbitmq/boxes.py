"""The consuming side of the mailboxes: taken, settled, given back, and buried what failed too often."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
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
    Message,
    bounded,
    emit,
)
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.handled import Handled
from stagewire_rabbitmq.inlet import Inlet
from stagewire_rabbitmq.letters import Batch, open_batch
from stagewire_rabbitmq.mailbox import Letter, Mailbox, MailFrame
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.tap import Delivered
from stagewire_rabbitmq.topology import mailbox_queue
from stagewire_rabbitmq.wire import Wire

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

PREFETCH = 32
IDLE = 1.0
"""Seconds without a taker after which a mailbox is no longer consumed; what waits in it goes back to its queue."""

REASON_LENGTH = 500

PutDead = Callable[[str, Message], Coroutine[Any, Any, None]]
"""Puts a dead letter into a mailbox."""


@dataclass(slots=True)
class Box:
    """A mailbox that is being taken from."""

    mailbox: Mailbox
    inlet: Inlet
    idle: asyncio.TimerHandle | None = None


class Boxes:
    """Belongs to one event loop."""

    def __init__(
        self,
        options: RabbitMQOptions,
        consuming: Wire,
        counters: Callable[[str], Counters],
        *,
        handled: Handled,
        put_dead: PutDead,
        log: FilteringBoundLogger,
    ) -> None:
        self._options = options
        self._consuming = consuming
        self._counters = counters
        self._handled = handled
        self._put_dead = put_dead
        self._log = log
        self._boxes: dict[str, Box] = {}
        self._closed = False
        self._burying: set[asyncio.Task[None]] = set()

    def box(self, name: str) -> Box:
        """Return a mailbox's box; consumes its queue from now on when somebody takes."""
        box = self._boxes.get(name)
        if box is None:
            queue = mailbox_queue(self._options, name)
            inlet = Inlet(
                self._consuming, queue, PREFETCH, arrive=partial(self._arrive, name), lost=partial(self._lost, name)
            )

            def settled(frame: MailFrame) -> None:
                inlet.settle(frame)
                self._handled.note(queue.name, frame)

            box = self._boxes[name] = Box(Mailbox(self._counters(name), settled), inlet)
        return box

    async def take(self, name: str, limit: int, timeout: float | None) -> list[Letter]:
        """Wait for letters of a mailbox, in hand until settled or given back."""
        box = self.box(name)
        if box.idle is not None:
            box.idle.cancel()
            box.idle = None
        box.inlet.resume()
        if box.inlet.tap.refused is not None:
            raise box.inlet.tap.refused
        try:
            letters = await box.mailbox.take(limit, timeout)
        finally:
            self._watch_idle(name, box)
        counters = box.mailbox.counters
        counters.gets += len(letters)
        counters.wait_seconds += sum(max(0.0, time.time() - letter.sent_at) for letter in letters)
        return letters

    def settle(self, name: str, letters: Sequence[Letter]) -> None:
        """Acknowledge what was handled."""
        self._boxes[name].mailbox.settle(letters)

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
        self._boxes[name].mailbox.give_back(alive)

    async def close(self, timeout: float) -> None:
        """Wake all who wait, end burials, stop consuming. Idempotent."""
        self._closed = True
        for box in self._boxes.values():
            if box.idle is not None:
                box.idle.cancel()
            box.mailbox.fail(Closed("the transport was closed"))
            box.inlet.close()
        if self._burying:
            await asyncio.wait(self._burying, timeout=timeout)
        self._handled.flush()

    def _lost(self, name: str, epoch: int) -> None:
        self._boxes[name].mailbox.lose(epoch)

    def _arrive(self, name: str, delivered: Delivered) -> None:
        mailbox = self._boxes[name].mailbox
        frame = MailFrame(delivered.tag, delivered.epoch, 1, delivered.reply_to)
        try:
            batch = open_batch(delivered.body)
        except CodecError as error:
            letter = Letter(Message(delivered.body), frame, 1, time.time())
            if name.endswith(DEAD_SUFFIX):
                mailbox.add([letter])
                return
            mailbox.counters.outstanding += 1
            self._spawn(self._bury(name, letter, str(error)))
            return
        frame.left, frame.number = len(batch.messages), batch.number
        mailbox.add(_letters(batch, frame, delivered))

    def _watch_idle(self, name: str, box: Box) -> None:
        if box.idle is None and not box.mailbox.wanted and not self._closed:
            box.idle = asyncio.get_running_loop().call_later(IDLE, self._go_idle, name)

    def _go_idle(self, name: str) -> None:
        box = self._boxes[name]
        box.idle = None
        if box.mailbox.wanted:
            return
        box.inlet.pause()
        for frame in box.mailbox.empty():
            box.inlet.settle(frame, keep=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
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
        await self._put_dead(name + DEAD_SUFFIX, Message(letter.message.payload, headers))
        mailbox = self._boxes[name].mailbox
        mailbox.counters.dead += 1
        mailbox.settle([letter])


def _letters(batch: Batch, frame: MailFrame, delivered: Delivered) -> list[Letter]:
    headers = delivered.headers
    failures = int(headers.get("x-delivery-count", delivered.redelivered))
    to, correlation = headers.get("reply-to"), headers.get("correlation-id")
    return [Letter(message, frame, failures, batch.sent_at, to, correlation) for message in batch.messages]
