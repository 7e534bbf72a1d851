"""The consuming end of one mailbox, on the event loop: letters in order, takers in order, settled frame by frame.

A frame is one AMQP message and holds the messages of one ``put_batch``; it is acknowledged when all of them were
handled. The queue is consumed only while somebody takes from the mailbox, so that what nobody here wants stays for
other processes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stagewire import Message
from stagewire_rabbitmq.counters import Counters


@dataclass(slots=True, eq=False)
class MailFrame:
    """One delivered AMQP message; good for the channel of its epoch. ``number`` is what its sender calls it."""

    tag: int
    epoch: int
    left: int
    reply_to: str | None = None
    number: int = 0


@dataclass(slots=True, eq=False)
class Letter:
    """One message in hand or waiting to be taken."""

    message: Message
    frame: MailFrame
    failures: int
    sent_at: float
    reply_to: str | None = None
    correlation: str | None = None


class Mailbox:
    """Letters for takers. Belongs to one event loop; ``settled`` is told the frames that may be acknowledged."""

    def __init__(self, counters: Counters, settled: Callable[[MailFrame], None]) -> None:
        self.counters = counters
        self._settled = settled
        self._letters: deque[Letter] = deque()
        self._takers: deque[asyncio.Future[None]] = deque()
        self._fault: Exception | None = None

    @property
    def wanted(self) -> bool:
        """Whether somebody waits to take."""
        return bool(self._takers)

    @property
    def waiting(self) -> int:
        """How many letters wait to be taken."""
        return len(self._letters)

    def add(self, letters: Sequence[Letter]) -> None:
        """Take delivered letters in."""
        self._letters.extend(letters)
        self._wake()

    def fail(self, fault: Exception | None) -> None:
        """Let every take fail, now and later; ``None`` lifts that."""
        self._fault = fault
        if fault is not None:
            for taker in self._takers:
                if not taker.done():
                    taker.set_result(None)

    async def take(self, limit: int, timeout: float | None) -> list[Letter]:
        """Wait for a letter; take up to ``limit``. Cancelled, it has taken none and its wake-up goes to the next."""
        try:
            async with asyncio.timeout(timeout):
                while not self._letters:
                    await self._turn()
        except TimeoutError:
            if not self._letters:
                return []
        count = min(limit, len(self._letters))
        letters = [self._letters.popleft() for _ in range(count)]
        self.counters.outstanding += count
        self.counters.redeliveries += sum(letter.failures > 0 for letter in letters)
        self._wake()
        return letters

    def settle(self, letters: Sequence[Letter]) -> None:
        """Note that letters in hand were dealt with."""
        self.counters.outstanding -= len(letters)
        for letter in letters:
            self._close(letter)

    def give_back(self, letters: Sequence[Letter]) -> None:
        """Put letters in hand back to the head, in order."""
        self.counters.outstanding -= len(letters)
        self._letters.extendleft(reversed(letters))
        self._wake()

    def lose(self, epoch: int) -> None:
        """Drop what waits from a lost channel: it will be delivered again."""
        self._letters = deque(letter for letter in self._letters if letter.frame.epoch > epoch)

    def empty(self) -> list[MailFrame]:
        """Take out all that waits; returns the frames of which nothing is in hand, to be given back to the broker."""
        waiting: dict[MailFrame, int] = {}
        for letter in self._letters:
            waiting[letter.frame] = waiting.get(letter.frame, 0) + 1
        whole = [frame for frame, count in waiting.items() if count == frame.left]
        self._letters = deque(letter for letter in self._letters if waiting[letter.frame] != letter.frame.left)
        return whole

    def _close(self, letter: Letter) -> None:
        letter.frame.left -= 1
        if not letter.frame.left:
            self._settled(letter.frame)

    async def _turn(self) -> None:
        if self._fault is not None:
            raise self._fault
        taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled():
                self._wake()
            raise
        finally:
            if taker in self._takers:
                self._takers.remove(taker)
        if self._fault is not None:
            raise self._fault

    def _wake(self) -> None:
        """Wake one taker for what is there; it wakes the next when it leaves something."""
        while self._letters and self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return
