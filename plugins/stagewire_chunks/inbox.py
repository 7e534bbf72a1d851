"""What the two sides of receiving share: registrations and unread messages, sleeping and waking."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stagewire import ChunkKey, ChunkMessage, Closed
from stagewire_chunks.context import Context
from stagewire_chunks.courtesy import Courteous
from stagewire_chunks.news import News

_IN_FLIGHT_GRACE = 0.01


@dataclass(slots=True, eq=False)
class Registration:
    """One registration of a request id. The object is its own token: it is compared by identity (CH-10).

    Attributes:
        request: The request id.
        key: The key of the next chunk.
        stall: Seconds of silence after which it ends in an error; ``None``: never.
        since: When the silence began.
        errors: Failed gets in a row.
        due: When to try again after them.
    """

    request: str
    key: ChunkKey
    stall: float | None
    since: float
    errors: int = 0
    due: float = 0.0


class Inbox:
    """Shared by the scheduling thread and the RECV thread; each method takes the lock, and holds it for a moment only.

    A *visit* is the time from just before a get to the commit of what it gave. The RECV thread has at most one.
    """

    def __init__(self, context: Context) -> None:
        self.lock = threading.Lock()
        self._courteous = Courteous(self.lock)
        self.stopped = False
        self.stale = 0
        self._options = context.options
        self._waiter = context.waiter
        self.news = News(context.options.poll_max)
        self._change = threading.Condition(self.lock)
        self._left = threading.Condition(self.lock)
        self._sleeping = False
        self._woken = False
        self._fresh = False
        self._visited: Registration | None = None
        self._visitor: int | None = None
        self._awaiting = 0
        self._told = False
        self._paused = False
        self._registered: dict[str, Registration] = {}
        self._ready: dict[str, list[ChunkMessage]] = {}
        self._held: dict[str, int] = {}

    @property
    def receiving(self) -> bool:
        """Whether anybody is registered."""
        return bool(self._registered)

    def register(self, registration: Registration) -> None:
        """Add a registration unless there is one for the request (CH-8)."""
        with self.lock:
            if self.stopped:
                raise Closed(f"the ChunkAdapter was stopped: it cannot load request {registration.request!r}")
            if self._registered.setdefault(registration.request, registration) is registration:
                self._fresh = True
                self._wake()

    def unregister(self, request: str) -> bool:
        """Remove a request with all that is unread; returns whether it was still being received.

        When this returns nothing of the registration can appear any more (CH-10). A get in flight is given a moment to
        come back: what it takes from the transport would otherwise be missing to the next registration of the same id.
        """
        with self.lock:
            registration = self._registered.pop(request, None)
            self._ready.pop(request, None)
            self._held.pop(request, None)
            if registration is None:
                return False
            if self._visited is registration and self._visitor != threading.get_ident():
                self._awaiting += 1
                self._left.wait_for(lambda: self._visited is not registration, _IN_FLIGHT_GRACE)
                self._awaiting -= 1
            return True

    def take(self, leave: Collection[str]) -> dict[str, list[ChunkMessage]]:
        """Take what is unread, except that of the requests to leave (CH-9)."""
        if not self._ready:
            self._told = False  # a commit at this very moment tells once too often at worst
            return {}
        with self.lock:
            taken, self._ready = self._ready, {}
            self._told = False
            if leave:
                self._ready = {request: messages for request, messages in taken.items() if request in leave}
                taken = {request: messages for request, messages in taken.items() if request not in leave}
            self._held = {request: self._held[request] for request in self._ready}
            if self._paused:
                self._paused = False
                self._wake()
            return taken

    def begin_round(self, now: float) -> tuple[list[Registration], bool]:
        """Return the registrations to visit, and whether some are new since the last round."""
        with self._courteous:
            self._woken = False
            fresh, self._fresh = self._fresh, False
            return self.news.choose(self._registered, now), fresh

    def begin_visit(self, registration: Registration, now: float) -> bool:
        """Return whether to get the registration's next chunk: it is still registered, and its window is open."""
        with self._courteous:
            if self.stopped or self._registered.get(registration.request) is not registration:
                return False
            if self._is_full(registration.request):
                registration.since = now  # it is the reader who is silent
                self._paused = True
                return False
            self._visited, self._visitor = registration, threading.get_ident()
            return True

    def end_visit(self) -> None:
        """End a visit that brought nothing."""
        self._visited = None
        if self._awaiting:
            with self.lock:
                self._left.notify_all()

    def commit(
        self, registration: Registration, messages: Sequence[ChunkMessage], size: int, next_key: ChunkKey | None
    ) -> bool:
        """End a visit with messages, the last ones if there is no next key; returns whether the owner is to be told.

        Messages for a registration that is no longer in force are dropped (CH-10).
        """
        request = registration.request
        with self._courteous:
            self._visited = None
            if self._awaiting:
                self._left.notify_all()
            if self.stopped or self._registered.get(request) is not registration:
                self.stale += len(messages)
                return False
            unread = self._ready.get(request)
            if unread is None:
                self._ready[request], self._held[request] = list(messages), size
            else:
                unread.extend(messages)
                self._held[request] += size
            if next_key is None:
                del self._registered[request]
            else:
                registration.key = next_key
            told, self._told = self._told, True
            return not told

    def hint(self, *requests: str) -> None:
        """Wake the RECV thread, from any thread: something may have arrived. Costs nothing while it is awake."""
        self.news.note(requests)
        self._woken = True  # before looking: whoever goes to sleep sets `_sleeping` and then looks at this
        if self._sleeping:
            with self.lock:
                self._change.notify()

    def sleep(self, pause: float) -> None:
        """Wait for news; whatever came since the round began, a stop included, is seen before the wait (CH-12)."""
        with self.lock:
            self._sleeping = True
            try:
                if not (self.stopped or self._woken):
                    self._waiter(self._change, pause)
            finally:
                self._sleeping = False

    def halt(self) -> None:
        """Let the RECV thread end and forget the registrations; what is unread stays to be taken. Idempotent."""
        with self.lock:
            self.stopped = True
            self._registered.clear()
            self._wake()

    def tables(self) -> dict[str, int]:
        """Return the sizes of what is kept per request."""
        with self.lock:
            return {
                "receiving": len(self._registered),
                "unread_requests": len(self._ready),
                "unread": sum(map(len, self._ready.values())),
                "unread_bytes": sum(self._held.values()),
            }

    def _is_full(self, request: str) -> bool:
        unread = self._ready.get(request)
        if unread is None:
            return False
        options = self._options
        return len(unread) >= options.window_chunks or self._held[request] >= options.window_bytes

    def _wake(self) -> None:
        self.news.note()
        self._woken = True
        self._change.notify()
