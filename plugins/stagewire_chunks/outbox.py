"""What the two sides of sending share: the backlog under its lock, sleeping and waking, closing and draining."""

from __future__ import annotations

import threading
from collections.abc import Callable

from stagewire_chunks.backlog import Backlog
from stagewire_chunks.context import Context
from stagewire_chunks.courtesy import Courteous
from stagewire_chunks.failures import Failures
from stagewire_chunks.room import Room


class Outbox:
    """Shared by `Sender` (any thread) and `Delivery` (the SAVE thread).

    ``backlog``, ``failures`` and ``room`` may be touched only with ``lock`` held; it is never held across a build, a
    put or a callback (CH-13).
    """

    def __init__(self, context: Context) -> None:
        self.lock = threading.Lock()
        self.courteous = Courteous(self.lock)
        self.backlog = Backlog()
        self.failures = Failures()
        self.room = Room(context.options, self.backlog)
        self.closed = False
        self.stopped = False
        self.cleared = False
        self._idle = context.options.idle
        self._clock = context.clock
        self._waiter = context.waiter
        self._work = threading.Condition(self.lock)
        self._change = threading.Condition(self.lock)
        self._sleeping = False
        self._watched = 0

    def wake(self) -> None:
        """Wake the SAVE thread if it sleeps. Call with the lock held."""
        if self._sleeping:
            self._work.notify()

    def changed(self) -> None:
        """Wake those who wait for room or for the end. Call with the lock held."""
        if self._watched:
            self._change.notify_all()

    def pause(self) -> float:
        """Return for how long there is nothing to put; 0 when there is. Call with the lock held."""
        if self.backlog.ready:
            return 0.0
        due = self.backlog.next_due()
        return self._idle if due is None else min(self._idle, max(0.0, due - self._clock()))

    def sleep(self, pause: float) -> None:
        """Wait for work; whatever came since the last step, a stop included, is seen before the wait begins (CH-12)."""
        with self.lock:
            if self.stopped or self.backlog.ready:
                return
            self._sleeping = True
            try:
                self._waiter(self._work, pause)
            finally:
                self._sleeping = False

    def wait_for_room(self, request: str, timeout: float) -> bool:
        """Wait until a chunk of the request fits, one as large as was refused last; returns whether it does."""
        return self._wait(lambda: self.closed or self.room.has_room(request), timeout) and not self.closed

    def close(self) -> None:
        """Admit nothing more, and let what waits for the caller go out now. Idempotent."""
        with self.lock:
            self.closed = True
            for lane in self.backlog.lanes.values():
                for item in lane.items:
                    item.use.linger = 0.0
                self.backlog.unpark(lane)
            self.wake()
            self.changed()

    def drained(self, timeout: float) -> bool:
        """Wait until nothing waits to be put; returns whether that came about. Call after `close`."""
        return self._wait(lambda: not self.backlog.chunks, timeout)

    def halt(self) -> None:
        """Let the SAVE thread end. Idempotent."""
        with self.lock:
            self.closed = self.stopped = True
            self._work.notify_all()
            self.changed()

    def clear(self) -> dict[str, int]:
        """Drop everything; returns how many chunks of each request were not put. Call after `halt`."""
        with self.lock:
            self.cleared = True
            unsent = {lane.request: lane.chunks for lane in self.backlog.lanes.values() if lane.chunks}
            self.backlog.clear()
            self.room.clear()
            return unsent

    def tables(self) -> dict[str, int]:
        """Return the sizes of what is kept per request."""
        with self.lock:
            return {"sending": len(self.backlog.lanes), "queued": self.backlog.chunks, "refused": len(self.room)}

    def counts(self) -> dict[str, int]:
        """Return the other sizes."""
        with self.lock:
            parked = sum(lane.parked for lane in self.backlog.lanes.values())
            return {"queued_bytes": self.backlog.bytes, "parked": parked, "failures": len(self.failures)}

    def _wait(self, reached: Callable[[], bool], timeout: float) -> bool:
        with self.lock:
            self._watched += 1
            try:
                return self._change.wait_for(reached, timeout)
            finally:
                self._watched -= 1
