"""One step of the RECV thread: a round over the registered requests, getting and committing (CH-8 … CH-11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stagewire import ChunkKey, ChunkMessage, Permanent, describe
from stagewire.codec import weigh
from stagewire_chunks.context import Context
from stagewire_chunks.inbox import Inbox, Registration
from stagewire_chunks.messages import Fault, error_message, fault_of
from stagewire_chunks.pacing import Pace

BURST = 64
"""Messages of one request that are got in a row before the others have their turn."""


@dataclass(slots=True)
class ReceiveCounts:
    """What the receiving side has done."""

    polls: int = 0
    gets: int = 0
    get_errors: int = 0
    stalled: int = 0


class Receiver:
    """Gets chunks by key, always the next one of each request.

    So a chunk that comes again is never asked for again, and one that comes early waits in the transport, within the
    transport's bounds, until those before it were taken (CH-17).
    """

    def __init__(
        self,
        inbox: Inbox,
        context: Context,
        on_ready: Callable[[], object] | None,
    ) -> None:
        self.counts = ReceiveCounts()
        self._inbox = inbox
        self._port = context.port
        self._options = context.options
        self._clock = context.clock
        self._watch = context.watch
        self._on_ready = on_ready
        self._pace = Pace(self._options.poll, self._options.poll_max)

    def step(self) -> float:
        """Do one round; returns the seconds to sleep, 0 when the next round is due now."""
        now = self._clock()
        registrations, fresh = self._inbox.begin_round(now)
        progress = False
        for registration in registrations:
            if registration.due <= now and self._visit(registration):
                progress = True
        if progress or fresh:
            self._pace.reset()
        news = self._inbox.news
        if progress and (news.pending or not news.given):
            return 0.0
        return self._pace.pause() if self._inbox.receiving else self._options.idle

    def _visit(self, registration: Registration) -> bool:
        """Get what has arrived of one request; returns whether there was something."""
        inbox, found = self._inbox, 0
        while found < BURST and inbox.begin_visit(registration, self._clock()):
            self.counts.polls += 1
            try:
                messages = self._port.get(registration.key, BURST)
                size, finished = _inspect(messages)
            except Exception as error:  # noqa: BLE001 — a foreign transport may raise anything
                self._suffer(registration, error)
                break
            if not messages:
                self._wait_on(registration)
                break
            self._commit(registration, messages, size, finished=finished)
            found += len(messages)
            if self._port.hands_out_runs:
                break
        if found >= BURST and inbox.news.given:
            inbox.news.note([registration.request])  # there may be more
        return found > 0

    def _commit(
        self, registration: Registration, messages: Sequence[ChunkMessage], size: int, *, finished: bool
    ) -> None:
        key = registration.key
        self.counts.gets += len(messages)
        registration.since, registration.errors = self._clock(), 0
        next_key = None if finished else ChunkKey(key.request, key.stage, key.chunk + len(messages))
        if self._inbox.commit(registration, messages, size, next_key):
            self._watch.call(self._on_ready)

    def _suffer(self, registration: Registration, error: Exception) -> None:
        """A get failed: it is tried again until it succeeds, cannot succeed, or the request stalls."""
        self.counts.get_errors += 1
        registration.errors += 1
        if registration.errors == 1:
            self._event("chunk.get_failed", registration, cause=describe(error), exc_info=error)
        if fault_of(error) is Fault.HOPELESS:
            self._end(registration, f"chunk {registration.key.chunk} cannot be had: {describe(error)}")
            return
        registration.due = self._clock() + self._options.pause(registration.errors)
        self._wait_on(registration, f"; the last get failed: {describe(error)}")

    def _wait_on(self, registration: Registration, why: str = "") -> None:
        """End a visit without a message, and the request with it when it has been silent for too long (CH-16)."""
        stall = registration.stall
        waited = 0.0 if stall is None else self._clock() - registration.since
        if stall is None or waited < stall:
            self._inbox.end_visit()
            return
        self.counts.stalled += 1
        self._event("chunk.stalled", registration, waited=waited)
        self._end(registration, f"no chunk {registration.key.chunk} for {waited:.3g} s{why}")

    def _end(self, registration: Registration, text: str) -> None:
        """Commit an ERROR terminal. What still comes of the request is given up first, and so never takes its place."""
        self.drop(registration.request)
        message = error_message(f"request {registration.request!r} on edge {self._watch.edge}: {text}")
        self._commit(registration, (message,), weigh(message["error"]), finished=True)

    def drop(self, request: str) -> None:
        """Let the transport drop what it holds of a request here."""
        try:
            self._port.cleanup(request)
        except Exception as error:  # noqa: BLE001 — a foreign transport may raise anything
            self._watch.event("chunk.cleanup_failed", request_id=request, cause=describe(error), exc_info=error)

    def _event(self, name: str, registration: Registration, **fields: object) -> None:
        self._watch.event(name, request_id=registration.request, chunk_id=registration.key.chunk, **fields)


def _inspect(messages: Sequence[ChunkMessage]) -> tuple[int, bool]:
    """Return the weight of messages and whether they end their request. Raises `Permanent` if one is no message."""
    size, finished = 0, False
    try:
        for message in messages:
            size += weigh(message["data"])
            finished = bool(message["finished"])
    except Exception as error:
        raise Permanent(f"the transport gave a {type(message).__name__} that is no chunk message") from error
    return size, finished
