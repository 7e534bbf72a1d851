"""Locks on files: the system lets go of them when their process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stagewire import KVError

FIRST_PAUSE, LAST_PAUSE = 0.00005, 0.002


def open_lock(path: Path) -> int:
    """Open a file to lock; make it where there is none."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock, or turn the one that is held into this kind; returns whether it is held now."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class GivenUp(KVError):
    """The operation was told to stop while it waited."""


@contextmanager
def exclusive(path: Path, descriptor: int, timeout: float, stop: threading.Event) -> Iterator[None]:
    """Hold the lock during the block.

    Raises:
        KVError: It was not free within ``timeout`` seconds.
        GivenUp: It was not free at once, and ``stop`` is set.
    """
    deadline, pause = time.monotonic() + timeout, FIRST_PAUSE
    while not try_lock(descriptor):
        if stop.wait(pause):
            raise GivenUp(f"shared memory {path.parent}: the operation was given up")
        if time.monotonic() > deadline:
            message = f"other processes have had its index for {timeout:g} s: is one of them stopped or overloaded?"
            raise KVError(f"shared memory {path.parent}: {message}")
        pause = min(2 * pause, LAST_PAUSE)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
