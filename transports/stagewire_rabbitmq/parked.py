"""Passes over the parked queue: each looks at every message that was parked when it began, once."""

from __future__ import annotations

from collections.abc import Callable

from stagewire_rabbitmq.tap import Deliver, Tap
from stagewire_rabbitmq.topology import Queue
from stagewire_rabbitmq.wire import Wire

PREFETCH = 64


class ParkedPasses:
    """Consumes the parked queue only during a pass; the first one, at the start, finds what a predecessor parked.

    What still nobody asks for is parked again, behind the end of the pass. Everything runs on the wire's thread.
    """

    def __init__(self, wire: Wire, queue: Queue, *, deliver: Deliver, lost: Callable[[int], None]) -> None:
        self.tap = Tap(
            wire,
            queue,
            PREFETCH,
            deliver=deliver,
            lost=lost,
            ready=lambda _tap: self.begin(lambda: None),
            flowing=False,
        )
        self.settled = False
        """Whether nothing parked is on its way here: a pass has ended, and none is under way."""
        self._left = 0
        self._running = False

    def begin(self, begun: Callable[[], None]) -> None:
        """Begin a pass, unless one is under way; ``begun`` is called when it has begun."""
        if self._running:
            return
        self._running, self.settled = True, False

        def counted(messages: int) -> None:
            self._left = messages
            begun()
            if messages:
                self.tap.resume()
            else:
                self._running, self.settled = False, True

        if not self.tap.count(counted):
            self._running = False

    def count_one(self) -> None:
        """Count a delivery; the last one ends the pass."""
        self._left -= 1
        if self._left <= 0:
            self.tap.pause()
            self._running, self.settled = False, True

    def interrupt(self) -> None:
        """Give a pass up: the channel is gone. The next one begins when there is a new one."""
        self.tap.pause()
        self._running, self.settled, self._left = False, False, 0
