"""Ends a process that does not end: the last resort of a stop.

A stage that blocks the event loop also blocks the stop path on it, and a thread that a stage left behind blocks the
interpreter's exit. Python's signal handlers run on the very thread that is stuck. So a thread of its own is told of
signals through the interpreter's wake-up descriptor, which is written even then, and ends the process when time is up.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

STOPS = frozenset({signal.SIGINT, signal.SIGTERM})
BLOCKED = "what blocks the event loop"
Reason = str | Callable[[], str]
"""What is waited for, or a function that says it."""

_LOOK_AGAIN = b"\xff"
"""Wakes the thread; no signal has this number."""


class Watchdog:
    """Counts down when it is armed or a stop signal comes, and then ends the process. Asleep until `start`.

    Args:
        status: The exit status of a process that it ends.
    """

    def __init__(self, status: int) -> None:
        self._status = status
        self._mouth: socket.socket | None = None
        self._patience: float | None = None
        self._end: float | None = None
        self._reason: Reason = ""
        self._blamed: Reason = BLOCKED

    def start(self) -> None:
        """Begin to watch, to the end of the process. Only in the main thread, once."""
        ear, self._mouth = socket.socketpair()
        self._mouth.settimeout(0)
        signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        # A forked worker that is sent a SIGTERM of its own must not be taken for this process.
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
        threading.Thread(target=self._watch, args=(ear,), name="watchdog", daemon=True).start()

    @contextmanager
    def after_signal(self, seconds: float, reason: Reason = BLOCKED) -> Iterator[None]:
        """Inside the block, give a stop signal this long to end it. The end of the block disarms."""
        self._patience, self._blamed = seconds, reason
        try:
            yield
        finally:
            self._patience = self._end = None
            self._wake()

    def arm(self, seconds: float, reason: Reason) -> None:
        """End the process in so many seconds, for this reason, unless an earlier end is set already.

        A callable is asked for it then, on the watching thread.
        """
        end = time.monotonic() + seconds
        if self._end is None or end < self._end:
            self._end, self._reason = end, reason
            self._wake()

    def _wake(self) -> None:
        if self._mouth is not None:
            with suppress(BlockingIOError):  # full: it will wake anyway
                self._mouth.send(_LOOK_AGAIN)

    def _watch(self, ear: socket.socket) -> None:
        while True:
            left = None if (end := self._end) is None else max(0.0, end - time.monotonic())
            if select.select([ear], [], [], left)[0]:
                self._hear(ear.recv(4096))
            elif self._end is not None and time.monotonic() >= self._end:
                self._end_process()

    def _hear(self, signals: bytes) -> None:
        if self._patience is not None and STOPS.intersection(signals):
            self.arm(self._patience, self._blamed)

    def _end_process(self) -> None:
        reason = self._reason if isinstance(self._reason, str) else self._reason()
        with suppress(OSError):  # not through sys.stderr, whose lock the stuck thread may hold
            os.write(2, f"error: forced to end, still waiting for {reason}\n".encode())
        os._exit(self._status)
