"""One bounded mailbox: first come, first served on both sides, and nothing lost to a cancel.

Hand-over is direct: whoever makes messages or room available gives them to the longest waiter and resolves its future,
so nobody is woken in vain and no newcomer overtakes. A waiter that is cancelled in the same tick gives back what it was
given. All of it runs on one event loop and never awaits while its state is being changed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from stagewire import Clock, Closed, Message
from stagewire_local.counters import Counters

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Envelope:
    """A message on its way: ``number`` is its place in the mailbox's order, ``failures`` is how often it came back."""

    message: Message
    size: int
    reply: asyncio.Future[Message] | None = None
    number: int = 0
    failures: int = 0
    put_at: float = 0.0


class Mailbox:
    """What waits, what is in hand, and who waits for either. Messages in hand count too, so they can come back."""

    def __init__(self, name: str, max_messages: int, max_bytes: int, clock: Clock) -> None:
        self.name = name
        self.counters = Counters()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._clock = clock
        self._ready: deque[Envelope] = deque()
        self._count = 0
        self._bytes = 0
        self._numbers = 0
        self._closed = False
        self._getters: dict[asyncio.Future[list[Envelope]], int] = {}
        self._putters: dict[asyncio.Future[bool], Sequence[Envelope]] = {}

    def could_hold(self, envelopes: Sequence[Envelope]) -> bool:
        """Whether the batch fits into the empty mailbox."""
        return len(envelopes) <= self._max_messages and _bytes(envelopes) <= self._max_bytes

    async def put(self, envelopes: Sequence[Envelope], timeout: float) -> bool:
        """Append all of them; returns False when there was no room in time and none was put.

        A put that is cancelled after room was found has taken effect.
        """
        if not self._putters and self._fits(envelopes):
            self._append(envelopes)
            return True
        started = self._clock()
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._putters[waiter] = envelopes
        try:
            return self._open(await _resolved(waiter, timeout, late=False))
        finally:
            self.counters.blocked_seconds += self._clock() - started
            self._putters.pop(waiter, None)
            self._admit()

    async def get(self, limit: int, timeout: float | None) -> list[Envelope]:
        """Take 1 to ``limit`` messages, or none when none came in time. Cancelled, it has taken none."""
        if self._ready:
            return self._take(limit)
        waiter: asyncio.Future[list[Envelope]] = asyncio.get_running_loop().create_future()
        self._getters[waiter] = limit
        try:
            return self._open(await _resolved(waiter, timeout, late=[]))
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._untake(waiter.result())
            raise
        finally:
            self._getters.pop(waiter, None)

    def settle(self, envelopes: Sequence[Envelope]) -> None:
        """Let go of messages in hand: they were handled."""
        self.counters.outstanding -= len(envelopes)
        self._release(envelopes)

    def give_back(self, envelopes: Sequence[Envelope]) -> None:
        """Put messages in hand back to their place in the order; they were not handled."""
        self.counters.outstanding -= len(envelopes)
        self.counters.redeliveries += len(envelopes)
        self._restore(envelopes)

    def withdraw(self, envelope: Envelope) -> None:
        """Remove a message that nobody has taken yet."""
        if envelope in self._ready:
            self._ready.remove(envelope)
            self._release([envelope])

    def force(self, envelope: Envelope) -> int:
        """Append without waiting; returns how many of the oldest messages were dropped to make room."""
        dropped = 0
        while self._ready and not self._fits([envelope]):
            self._release([self._ready.popleft()])
            dropped += 1
        self.counters.dropped += dropped
        self._append([envelope])
        return dropped

    def purge(self) -> list[Envelope]:
        """Remove and return what waits; messages in hand stay there."""
        purged = list(self._ready)
        self._ready.clear()
        self._release(purged)
        self.counters.dropped += len(purged)
        return purged

    def close(self) -> list[Envelope]:
        """Wake everyone who waits with `Closed` and return the messages that nobody took."""
        self._closed = True
        for getter in self._getters:
            _resolve(getter, [])
        for putter in self._putters:
            _resolve(putter, False)  # noqa: FBT003 — the future's value: not admitted
        self._getters.clear()
        self._putters.clear()
        left = list(self._ready)
        self._ready.clear()
        self._release(left)
        self.counters.unread, self.counters.unread_bytes = len(left), _bytes(left)
        return left

    def stats(self) -> dict[str, float]:
        """Return the counters, with what waits now."""
        values = self.counters.snapshot()
        if self._ready:
            values["unread"], values["unread_bytes"] = len(self._ready), _bytes(tuple(self._ready))
        return values

    def _open(self, outcome: T) -> T:
        if self._closed and not outcome:
            raise Closed(f"the transport was closed while waiting on mailbox {self.name!r}")
        return outcome

    def _fits(self, envelopes: Sequence[Envelope]) -> bool:
        count, size = self._count + len(envelopes), self._bytes + _bytes(envelopes)
        return count <= self._max_messages and size <= self._max_bytes

    def _append(self, envelopes: Sequence[Envelope]) -> None:
        now = self._clock()
        for envelope in envelopes:
            self._numbers += 1
            envelope.number, envelope.put_at = self._numbers, now
        self._ready.extend(envelopes)
        self._count += len(envelopes)
        self._bytes += _bytes(envelopes)
        self.counters.puts += len(envelopes)
        self.counters.bytes += _bytes(envelopes)
        self._serve()

    def _serve(self) -> None:
        while self._ready and self._getters:
            waiter = next(iter(self._getters))
            limit = self._getters.pop(waiter)
            if not waiter.done():
                waiter.set_result(self._take(limit))

    def _admit(self) -> None:
        while self._putters:
            waiter, envelopes = next(iter(self._putters.items()))
            if not waiter.done():
                if not self._fits(envelopes):
                    return
                self._append(envelopes)
                waiter.set_result(True)
            self._putters.pop(waiter, None)

    def _take(self, limit: int) -> list[Envelope]:
        taken = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        now = self._clock()
        self.counters.gets += len(taken)
        self.counters.outstanding += len(taken)
        self.counters.wait_seconds += sum(now - envelope.put_at for envelope in taken)
        return taken

    def _untake(self, envelopes: Sequence[Envelope]) -> None:
        now = self._clock()
        self.counters.gets -= len(envelopes)
        self.counters.outstanding -= len(envelopes)
        self.counters.wait_seconds -= sum(now - envelope.put_at for envelope in envelopes)
        self._restore(envelopes)

    def _restore(self, envelopes: Sequence[Envelope]) -> None:
        self._ready = deque(sorted([*envelopes, *self._ready], key=lambda envelope: envelope.number))
        self._serve()

    def _release(self, envelopes: Sequence[Envelope]) -> None:
        self._count -= len(envelopes)
        self._bytes -= _bytes(envelopes)
        self._admit()


def _bytes(envelopes: Sequence[Envelope]) -> int:
    return sum(envelope.size for envelope in envelopes)


async def _resolved(waiter: asyncio.Future[T], timeout: float | None, *, late: T) -> T:
    """Await the future; after ``timeout`` seconds it is resolved with ``late``, so that it has one outcome only."""
    if timeout is None:
        return await waiter
    timer = asyncio.get_running_loop().call_later(timeout, _resolve, waiter, late)
    try:
        return await waiter
    finally:
        timer.cancel()


def _resolve(waiter: asyncio.Future[T], value: T) -> None:
    if not waiter.done():
        waiter.set_result(value)
