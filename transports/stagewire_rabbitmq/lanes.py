"""What waits to be published, and whom to tell: parcels in lanes, one lane a queue."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagewire import TransportError
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.topology import Queue

YOUNG_REFUSALS = 8


class Ticket:
    """What a caller waits on: the results of several parcels, in the order in which they were handed in."""

    def __init__(self, count: int, then: Callable[[], None] | None = None) -> None:
        self.results: list[Exception | None] = [None] * count
        self.settled = [False] * count
        self.abandoned = False
        self._then = then
        self._left = count
        self._done = threading.Event()

    def settle(self, index: int, result: Exception | None) -> None:
        """Set one result. On the wire's thread."""
        self.results[index] = result
        self.settled[index] = True
        self._left -= 1
        if not self._left:
            self._done.set()
            if self._then is not None:
                self._then()

    def wait(self, timeout: float) -> bool:
        """Wait until every result is set; returns whether they are."""
        return self._done.wait(timeout)


@dataclass(slots=True, eq=False)
class Parcel:
    """One thing to be published: its bytes, and whom to tell."""

    content: bytes
    ticket: Ticket
    index: int
    headers: dict[str, Any] | None = None
    to: str | None = None
    reply_to: str | None = None
    number: int = 0

    @property
    def settled(self) -> bool:
        return self.ticket.settled[self.index]

    def settle(self, result: Exception | None) -> None:
        if not self.settled:
            self.ticket.settle(self.index, result)


@dataclass(slots=True, eq=False)
class Lane:
    """The way to one queue. ``join`` makes one message body of several contents; headers only where ``most`` is 1.

    Without a queue it is the way to queues of others, each parcel naming its own: none is declared here, and a parcel
    whose queue does not exist fails.
    """

    queue: Queue | None
    join: Callable[[Sequence[bytes]], bytes]
    most: int
    most_bytes: int
    counters: Counters
    waiting: deque[Parcel] = field(default_factory=deque)
    in_flight: int = 0
    declared: bool = False
    refused: TransportError | None = None
    proven: bool = False
    refusals: int = 0

    @property
    def may_be_young(self) -> bool:
        """Whether a refusal may mean that a quorum queue has no leader yet."""
        quorum = self.queue is not None and self.queue.arguments.get("x-queue-type") == "quorum"
        return quorum and not self.proven and self.refusals < YOUNG_REFUSALS

    @property
    def ready(self) -> bool:
        """Whether there is a queue to publish to."""
        return self.declared or self.queue is None


def single(contents: Sequence[bytes]) -> bytes:
    """Make a body of the one content, for lanes whose ``most`` is 1."""
    return contents[0]
