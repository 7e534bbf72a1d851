"""How the background threads take the locks that they share with the scheduling thread."""

from __future__ import annotations

import threading
import time

_TRIES = 100


class Courteous:
    """A lock taken without queueing for it: whoever holds it is let on instead.

    A thread that queues is handed the lock the moment it is free, and then waits for the interpreter with the lock in
    its hands; the other thread runs into it at its next call and stops, and so they go on changing places at each chunk
    (a lock convoy). Since the scheduling thread is the one that must not wait (CH-1), the others yield to it.
    """

    __slots__ = ("_lock",)

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        acquire = self._lock.acquire
        for _ in range(_TRIES):
            if acquire(blocking=False):
                return
            time.sleep(0)
        acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()
