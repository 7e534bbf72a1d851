"""Carries a mailbox's deliveries from the wire's thread to the event loop, and acknowledgements back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from stagewire_rabbitmq.mailbox import MailFrame
from stagewire_rabbitmq.tap import Deliver, Delivered, Tap
from stagewire_rabbitmq.topology import Queue
from stagewire_rabbitmq.wire import Wire


def post(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    """Run ``work`` on the loop soon, from any thread; a loop that was closed needs no news any more."""
    try:
        loop.call_soon_threadsafe(work)
    except RuntimeError:
        if not loop.is_closed():
            raise


class Inlet:
    """One consumer of one queue for one event loop. Hand-over is batched: many deliveries cost one wake-up."""

    def __init__(
        self,
        wire: Wire,
        queue: Queue,
        prefetch: int,
        *,
        arrive: Deliver,
        lost: Callable[[int], None],
        ready: Callable[[Tap], None] = lambda _tap: None,
    ) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._arrive = arrive
        self._lost = lost
        self._lock = threading.Lock()
        self._arrived: list[Delivered] = []
        self._settled: list[tuple[MailFrame, bool]] = []
        self.tap = Tap(wire, queue, prefetch, deliver=self._deliver, lost=self._tell_lost, ready=ready, flowing=False)
        wire.add(self.tap)

    def resume(self) -> None:
        """Take deliveries. On the loop."""
        self._wire.call(self.tap.resume)

    def pause(self) -> None:
        """Stop taking deliveries. On the loop."""
        self._wire.call(self.tap.pause)

    async def backlog(self) -> int:
        """Return how many messages wait in the queue; 0 also while there is no channel to ask on."""
        answer: asyncio.Future[int] = self._loop.create_future()

        def answered(count: int) -> None:
            if not answer.done():
                answer.set_result(count)

        def ask() -> None:
            if not self.tap.count(lambda count: post(self._loop, lambda: answered(count))):
                post(self._loop, lambda: answered(0))

        self._wire.call(ask)
        return await answer

    def settle(self, frame: MailFrame, *, keep: bool = False) -> None:
        """Acknowledge a frame, or with ``keep`` give it back to the queue. On the loop."""
        with self._lock:
            wake = not self._settled
            self._settled.append((frame, keep))
        if wake:
            self._wire.call(self._flush)

    def close(self) -> None:
        """End the consumer; what is not acknowledged goes back to the queue."""
        self._wire.drop(self.tap)

    def _deliver(self, delivered: Delivered) -> None:
        with self._lock:
            wake = not self._arrived
            self._arrived.append(delivered)
        if wake:
            post(self._loop, self._absorb)

    def _absorb(self) -> None:
        with self._lock:
            arrived, self._arrived = self._arrived, []
        for delivered in arrived:
            self._arrive(delivered)

    def _tell_lost(self, epoch: int) -> None:
        post(self._loop, lambda: self._lost(epoch))

    def _flush(self) -> None:
        with self._lock:
            settled, self._settled = self._settled, []
        for frame, keep in settled:
            if keep:
                self.tap.give_back(frame.tag, frame.epoch)
            else:
                self.tap.ack(frame.tag, frame.epoch)
        self.tap.flush()
