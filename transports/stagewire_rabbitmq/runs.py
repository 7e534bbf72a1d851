"""What one request has at the consumer, as plain data: runs of chunks, each from id 0 to a final one.

A run knows what was taken, so that a repeat is known before and after it; and how much of it its sender was told to
be gone, which is what opens the sender's window again (TR-5).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from stagewire import ChunkMessage, StageId

Name = tuple[StageId, str]
"""A request as both ends of a link know it: (stage, request id)."""

GONE = 2**62
"""The base of a run of which nothing is wanted any more: it never fills its sender's window."""


class Grant(NamedTuple):
    """What a sender is told: nothing below ``base`` of this run is waiting at the consumer."""

    to: str
    name: Name
    run: int
    base: int


class Arrival(NamedTuple):
    """One chunk of a message. Without a ``message`` it is a mark: its sender has put all chunks up to this one."""

    name: Name
    run: int
    chunk: int
    message: ChunkMessage | None
    size: int
    sent_at: float


class Frame:
    """One delivered message: ``tag`` is only good for the channel of its ``epoch``, at the consumer ``source``.

    ``reply_to`` is where its sender takes grants.
    """

    __slots__ = ("body", "epoch", "parts", "pending", "reply_to", "source", "tag")

    def __init__(self, source: str, tag: int, epoch: int, body: bytes, reply_to: str | None = None) -> None:
        self.source = source
        self.tag = tag
        self.epoch = epoch
        self.body = body
        self.reply_to = reply_to
        self.pending = 0
        self.parts: set[Stream] = set()


@dataclass(slots=True)
class Held:
    """A chunk that was delivered and not taken."""

    message: ChunkMessage
    frame: Frame
    size: int
    sent_at: float


class Run:
    """The chunks of one run: those held, and which ones are gone: taken, or known not to come.

    Everything below ``base`` is gone, and what is ``ahead`` of it; ``granted`` is the base that the sender knows.
    """

    __slots__ = ("ahead", "base", "final", "granted", "held", "reply_to", "token", "untold")

    def __init__(self, token: int) -> None:
        self.token = token
        self.base = 0
        self.ahead: set[int] = set()
        self.final: int | None = None
        self.held: dict[int, Held] = {}
        self.reply_to: str | None = None
        self.granted = 0
        self.untold = 0

    def was_taken(self, chunk: int) -> bool:
        return chunk < self.base or chunk in self.ahead

    def take(self, chunk: int) -> Held | None:
        held = self.held.pop(chunk, None)
        if held is not None:
            self.untold += held.size
            if chunk == self.base and not self.ahead:
                self.base += 1
            else:
                self.ahead.add(chunk)
                self._advance()
        return held

    def skip(self, chunk: int) -> None:
        """Learn that of everything up to ``chunk`` only what is held here is still to be had."""
        self.base = max(self.base, min([*self.held, chunk + 1]))
        self.ahead = {number for number in self.ahead if number >= self.base}
        self._advance()

    def grant(self, name: Name, base: int) -> Grant | None:
        """Note that the sender is told of ``base``; ``None`` when there is nowhere to tell it."""
        self.granted, self.untold = base, 0
        return None if self.reply_to is None else Grant(self.reply_to, name, self.token, base)

    def _advance(self) -> None:
        while self.base in self.ahead:
            self.ahead.remove(self.base)
            self.base += 1

    @property
    def taken(self) -> bool:
        return self.final is not None and self.base > self.final


class Stream:
    """What one request has here: its runs in order of arrival; the reader is in the first."""

    __slots__ = ("asked_at", "asked_for", "name", "parked", "runs", "seen_at", "starved_at")

    def __init__(self, name: Name, now: float) -> None:
        self.name = name
        self.runs: deque[Run] = deque()
        self.asked_at: float | None = None
        self.asked_for = 0
        self.starved_at: float | None = None
        self.seen_at = now
        self.parked = False

    def run(self, token: int) -> Run:
        for run in self.runs:
            if run.token == token:
                return run
        run = Run(token)
        self.runs.append(run)
        return run

    def drop(self, frame: Frame) -> None:
        """Forget what came in this frame."""
        for run in self.runs:
            for chunk in [chunk for chunk, held in run.held.items() if held.frame is frame]:
                del run.held[chunk]
