"""The two background threads: each calls a step again and again, and sleeps as long as the step says."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Worker:
    """A daemon thread that is started when it is first needed (CH-12)."""

    def __init__(
        self, name: str, step: Callable[[], float], sleep: Callable[[float], None], stopped: Callable[[], bool]
    ) -> None:
        self._step = step
        self._sleep = sleep
        self._stopped = stopped
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.started = False

    @property
    def name(self) -> str:
        """The thread's name."""
        return self._thread.name

    def start(self) -> None:
        """Start the thread unless it was started. Any thread may call it."""
        with self._lock:
            if not self.started and not self._stopped():
                self.started = True
                self._thread.start()

    def join(self, timeout: float) -> bool:
        """Wait for the thread's end; returns whether it has ended. From the thread itself: false at once."""
        with self._lock:
            running = self.started
        if running and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped():
            pause = self._step()
            if pause > 0:
                self._sleep(pause)
