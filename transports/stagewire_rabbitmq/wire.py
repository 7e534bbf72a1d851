"""One AMQP connection that a thread of its own keeps alive.

pika's SelectConnection is driven by callbacks on that thread; everything in this package that touches a channel runs
there. pika's BlockingConnection would be less code, but it cannot pipeline confirms, starves heartbeats while a
callback blocks, and never returns from a publish while the broker is frozen or in an alarm; here the waiting is done
by the caller, with its own deadline, and the thread always answers heartbeats.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import pika
from pika.adapters.select_connection import IOLoop
from pika.channel import Channel
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker

from stagewire import Clock, TransportError, describe, emit
from stagewire_rabbitmq.faults import map_fault

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

FIRST_RETRY = 0.1
LAST_RETRY = 5.0
CLOSE_GRACE = 1.0


class Session(Protocol):
    """What lives on a wire: told, on the wire's thread, when there is a channel and when there is none any more."""

    def up(self, channel: Channel) -> None: ...

    def down(self, fault: TransportError) -> None: ...


class Wire:
    """Connects, opens one channel per session, and connects again whenever the connection or a channel is lost.

    ``call`` may be used from any thread; all other work happens on the wire's thread.
    """

    def __init__(
        self, name: str, parameters: pika.connection.Parameters, clock: Clock, log: FilteringBoundLogger
    ) -> None:
        self.reconnects = 0
        self._log = log
        self._name = name
        self._parameters = parameters
        self._clock = clock
        self._loop: Any = None
        self._early: list[Callable[[], None]] = []
        self._start_lock = threading.Lock()
        self._sessions: list[Session] = []
        self._open: dict[Session, Channel] = {}
        self._connection: pika.SelectConnection | None = None
        self._retry = FIRST_RETRY
        self._closing = False
        self._fault: TransportError | None = None
        self._was_open = False
        self._lost_at: float | None = None
        self._blocked_since: float | None = None
        self._blocked_before = 0.0
        self._settled = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"stagewire-rabbitmq-{name}", daemon=True)

    @property
    def fault(self) -> TransportError | None:
        """Why there is no connection now; ``None`` while there is one."""
        return self._fault

    @property
    def blocked(self) -> bool:
        """Whether the broker has stopped publishers (a memory or disk alarm)."""
        return self._blocked_since is not None

    @property
    def blocked_seconds(self) -> float:
        """For how long the broker has stopped publishers, in all (TR-12)."""
        since = self._blocked_since
        return self._blocked_before + (0.0 if since is None else self._clock() - since)

    def start(self) -> None:
        """Start the thread and begin to connect."""
        with self._start_lock:
            self._loop = IOLoop()  # not before: it holds sockets, and what is only built must hold nothing
            for work in (self._connect, *self._early):
                self._loop.add_callback_threadsafe(work)
            self._early.clear()
        self._thread.start()

    def wait(self, timeout: float) -> TransportError | None:
        """Wait until the first attempt to connect has ended; returns its fault. From any thread but the wire's."""
        self._settled.wait(timeout)
        return self._fault

    def call(self, work: Callable[[], None]) -> None:
        """Run ``work`` on the wire's thread soon, once there is one. From any thread; dropped after `close`."""
        if self._loop is None:
            with self._start_lock:
                if self._loop is None:
                    self._early.append(work)
                    return
        if not self._closing:
            self._loop.add_callback_threadsafe(work)

    def later(self, delay: float, work: Callable[[], None]) -> None:
        """Run ``work`` after ``delay`` seconds. On the wire's thread only."""
        self._loop.call_later(delay, work)

    def add(self, session: Session) -> None:
        """Give a session its channel, now and after each reconnect. From any thread."""
        self.call(lambda: self._adopt(session))

    def drop(self, session: Session) -> None:
        """Close a session's channel for good. From any thread."""
        self.call(lambda: self._release(session))

    def close(self, timeout: float) -> bool:
        """Close the connection and end the thread; returns whether both ended in time. Idempotent."""
        if self._thread.ident is None:
            self._closing = True
            return True
        if not self._closing:
            self._loop.add_callback_threadsafe(lambda: self._shut(timeout))
            self._closing = True
        self._thread.join(timeout + CLOSE_GRACE)
        return not self._thread.is_alive()

    def _main(self) -> None:
        self._loop.start()
        self._loop.close()

    def _connect(self) -> None:
        if self._closing:
            return
        self._connection = pika.SelectConnection(
            self._parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_lost,
            on_close_callback=self._on_lost,
            custom_ioloop=self._loop,
        )

    def _on_open(self, connection: pika.SelectConnection) -> None:
        connection.add_on_connection_blocked_callback(lambda *_: self._set_blocked(blocked=True))
        connection.add_on_connection_unblocked_callback(lambda *_: self._set_blocked(blocked=False))
        self._retry = FIRST_RETRY
        self._fault, self._was_open = None, True
        self._settled.set()
        if self._lost_at is not None:
            emit(self._log, "transport.restored", connection=self._name, seconds=self._clock() - self._lost_at)
            self._lost_at = None
        for session in self._sessions:
            self._open_channel(session)

    def _adopt(self, session: Session) -> None:
        self._sessions.append(session)
        if self._connection is not None and self._connection.is_open:
            self._open_channel(session)

    def _open_channel(self, session: Session) -> None:
        assert self._connection is not None

        def opened(channel: Channel) -> None:
            channel.add_on_close_callback(lambda closed, reason: self._on_channel_lost(session, closed, reason))
            self._open[session] = channel
            session.up(channel)

        self._connection.channel(on_open_callback=opened)

    def _release(self, session: Session) -> None:
        self._sessions = [other for other in self._sessions if other is not session]
        channel = self._open.pop(session, None)
        if channel is not None and channel.is_open:
            channel.close()

    def _on_channel_lost(self, session: Session, channel: Channel, reason: Exception) -> None:
        # A channel that goes with its connection is told of by _on_lost.
        if self._open.get(session) is not channel or not isinstance(reason, ChannelClosedByBroker):
            return
        del self._open[session]
        session.down(map_fault(reason, self._parameters))
        connection = self._connection
        if connection is not None and connection.is_open and not self._closing:
            self.later(self._next_retry(), lambda: self._reopen(session, connection))

    def _reopen(self, session: Session, connection: pika.SelectConnection) -> None:
        if connection.is_open and connection is self._connection and session in self._sessions:
            self._open_channel(session)

    def _on_lost(self, _connection: Any, reason: BaseException) -> None:
        self._set_blocked(blocked=False)
        self._connection = None
        self._fault = map_fault(reason, self._parameters)
        self._settled.set()
        lost, self._open = self._open, {}
        for session in lost:
            session.down(self._fault)
        if self._closing:
            self._loop.stop()
            return
        self.reconnects += 1
        self._tell_lost(self._fault)
        self.later(self._next_retry(), self._connect)

    def _tell_lost(self, fault: TransportError) -> None:
        """Tell of the loss of a connection once, not of every attempt to make it anew, nor of the first to make one."""
        if self._was_open and self._lost_at is None:
            self._lost_at = self._clock()
            emit(self._log, "transport.lost", connection=self._name, cause=describe(fault))

    def _next_retry(self) -> float:
        delay = self._retry
        self._retry = min(delay * 2, LAST_RETRY)
        return delay * random.uniform(0.5, 1.0)  # noqa: S311 — spreads clients out, guards nothing

    def _set_blocked(self, *, blocked: bool) -> None:
        if blocked == self.blocked:
            return
        if self._blocked_since is None:
            self._blocked_since = self._clock()
            emit(self._log, "transport.blocked", connection=self._name)
        else:
            seconds = self._clock() - self._blocked_since
            self._blocked_before, self._blocked_since = self._blocked_before + seconds, None
            emit(self._log, "transport.unblocked", connection=self._name, seconds=seconds)

    def _shut(self, timeout: float) -> None:
        self.later(timeout, self._abort)
        connection = self._connection
        if connection is None or connection.is_closed:
            self._loop.stop()
        elif connection.is_open:
            connection.close()
        # While still opening, the outcome of the attempt comes to _on_lost or _on_open; both see _closing.
        elif not connection.is_closing:
            self._abort()

    def _abort(self) -> None:
        """Cut the connection: the broker does not answer the request to close it."""
        connection = self._connection
        if connection is None or connection.is_closed:
            self._loop.stop()
            return
        given_up = AMQPConnectionError("given up: the broker did not answer in time")
        connection._terminate_stream(given_up)  # noqa: SLF001 — pika has no public way to drop a dead connection
        self.later(CLOSE_GRACE / 2, self._loop.stop)
