"""Bytes in and out of a segment, through a map of its file."""

from __future__ import annotations

import fcntl
import mmap
import os
import threading

from stagewire import KVError

PIECE = 1024 * 1024
"""Bytes copied at once: other threads run in between, and an operation that was given up ends."""

SHARED = mmap.MAP_SHARED | mmap.MAP_POPULATE


def write(descriptor: int, value: memoryview, stop: threading.Event) -> None:
    """Copy a value into a segment. Raises `KVError` when ``stop`` is set meanwhile."""
    with mmap.mmap(descriptor, value.nbytes, SHARED) as target:
        for start in range(0, value.nbytes, PIECE):
            if stop.is_set():
                raise KVError("the operation was given up")
            target[start : start + PIECE] = value[start : start + PIECE]


def read(descriptor: int, size: int) -> memoryview:
    """Map a segment's value, read-only, and close the descriptor.

    The map has a duplicate of the descriptor, and with it keeps the segment's lock until the last view is gone.
    """
    try:
        return memoryview(mmap.mmap(descriptor, size, SHARED, mmap.PROT_READ))
    finally:
        os.close(descriptor)


def unlock(descriptor: int) -> None:
    """Let go of a segment, also where a forked child has a copy of the descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
