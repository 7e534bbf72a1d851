"""The segments: files in shared memory that hold one value each and are used again and again.

A segment is *free*, or a writer is *writing* to it, or it is *live*: an entry shows it. Two locks on its file say what
the index cannot, because the system lets go of them when a process dies:

- A writer holds it exclusively. A segment in *writing* that nobody holds was left by a dead writer and is free.
- A holder shares it as long as anything refers to its bytes. A *free* segment that is still shared is not used again.

All this happens inside transactions of the index, so between finding a segment and locking it nothing changes.
"""

from __future__ import annotations

import mmap
import os
from functools import partial
from pathlib import Path

from stagewire import KVError
from stagewire_shm.faults import damaged
from stagewire_shm.index import Transaction
from stagewire_shm.locks import try_lock

PAGE = mmap.PAGESIZE
STEPS = 4
"""Sizes of segments per doubling: a value of a little more than a power of two wastes a quarter at most."""

SPARE = 2
"""A free segment is used for values of half its size and more; smaller ones get a new one."""


def capacity_for(size: int) -> int:
    """Return how large the segment of a value is made."""
    step = max(PAGE, (1 << max(0, size - 1).bit_length()) // (2 * STEPS))
    return -(-size // step) * step


class Segments:
    """The pool. Has no state of its own: other processes change it too."""

    def __init__(self, place: Path, max_bytes: int) -> None:
        self._place = place
        self._max_bytes = max_bytes

    def reserve(self, work: Transaction, key: str, size: int) -> tuple[int, int]:
        """Return a segment for a value and its file's descriptor, locked for writing.

        Raises:
            KVError: The byte budget is used up.
        """
        reused = self._reuse(work, size)
        if reused is not None:
            return reused
        capacity = capacity_for(size)
        self._make_room(work, key, capacity)
        return self._create(work, capacity)

    def _reuse(self, work: Transaction, size: int) -> tuple[int, int] | None:
        """Take the free segment that fits best and was used last, since its pages are the warmest."""
        fitting = work.db.execute(
            "SELECT id FROM segments WHERE state = 'free' AND capacity BETWEEN ? AND ? ORDER BY capacity, since DESC",
            (size, SPARE * capacity_for(size)),
        ).fetchall()
        for (segment,) in fitting:
            descriptor = self._hold(work, segment)
            if descriptor is not None:
                self._check_length(segment, descriptor, size)
                work.db.execute("UPDATE segments SET state = 'writing' WHERE id = ?", (segment,))
                return segment, descriptor
        return None

    def _make_room(self, work: Transaction, key: str, capacity: int) -> None:
        self.reclaim(work)
        excess = self._used(work) + capacity - self._max_bytes
        if excess > 0:
            excess -= self.give_back(work, work.now, excess)
        if excess > 0:
            used, lost = self._used(work), f"and {key!r} needs {capacity}"
            message = f"{used} of {self._max_bytes} bytes are used by values and by what readers hold, {lost}"
            raise KVError(f"shared memory {self._place} is full: {message}; raise max_bytes, or delete values earlier")

    def _used(self, work: Transaction) -> int:
        return int(work.db.execute("SELECT COALESCE(SUM(capacity), 0) FROM segments").fetchone()[0])

    def _create(self, work: Transaction, capacity: int) -> tuple[int, int]:
        """Make a segment with all its pages there, so that no write to it can fail for want of memory."""
        values = (capacity, work.now)
        inserted = work.db.execute("INSERT INTO segments (capacity, state, since) VALUES (?, 'writing', ?)", values)
        segment = inserted.lastrowid
        assert segment is not None, "an insert has a row"
        path = self.path(segment)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, capacity)
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
        if try_lock(descriptor):
            return segment, descriptor
        os.close(descriptor)
        raise damaged(self._place, f"the new {path.name} is locked")

    def reclaim(self, work: Transaction) -> None:
        """Free the segments whose writer is dead."""
        for (segment,) in work.db.execute("SELECT id FROM segments WHERE state = 'writing'").fetchall():
            descriptor = self._hold(work, segment)
            if descriptor is not None:
                os.close(descriptor)
                self.free(work, segment)

    def free(self, work: Transaction, segment: int) -> None:
        """Put a segment that was written for nothing back into the pool."""
        statement = "UPDATE segments SET state = 'free', since = ? WHERE id = ? AND state = 'writing'"
        work.db.execute(statement, (work.now, segment))

    def give_back(self, work: Transaction, before: float, enough: float = float("inf")) -> int:
        """Remove free segments that nobody holds, unused since ``before``, the longest unused first; returns bytes."""
        freed = 0
        query = "SELECT id, capacity FROM segments WHERE state = 'free' AND since <= ? ORDER BY since"
        for segment, capacity in work.db.execute(query, (before,)).fetchall():
            descriptor = self._hold(work, segment) if freed < enough else None
            if descriptor is not None:
                os.close(descriptor)
                work.db.execute("DELETE FROM segments WHERE id = ?", (segment,))
                work.after.append(partial(self.path(segment).unlink, missing_ok=True))
                freed += capacity
        return freed

    def remove_strays(self, work: Transaction) -> None:
        """Remove files that the index does not know: made or given back by a process that died in the middle."""
        known = {self.path(segment).name for (segment,) in work.db.execute("SELECT id FROM segments")}
        for path in self._place.glob("segment-*"):
            if path.name not in known:
                path.unlink(missing_ok=True)

    def _hold(self, work: Transaction, segment: int) -> int | None:
        """Open and lock a segment that no entry shows; ``None`` when somebody else has it, or its file is gone."""
        try:
            descriptor = os.open(self.path(segment), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            work.db.execute("DELETE FROM segments WHERE id = ?", (segment,))
            return None
        if try_lock(descriptor):
            return descriptor
        os.close(descriptor)
        return None

    def share(self, segment: int, size: int) -> int:
        """Open a live segment for reading and share its lock; returns its descriptor."""
        descriptor = os.open(self.path(segment), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        if not try_lock(descriptor, shared=True):
            os.close(descriptor)
            raise damaged(self._place, f"{self.path(segment).name} is locked")
        self._check_length(segment, descriptor, size)
        return descriptor

    def _check_length(self, segment: int, descriptor: int, size: int) -> None:
        """Refuse a segment that somebody cut: a map of what is not there ends the process when it is read."""
        if os.fstat(descriptor).st_size < size:
            os.close(descriptor)
            raise damaged(self._place, f"{self.path(segment).name} is too short")

    def path(self, segment: int) -> Path:
        """Return a segment's file."""
        return self._place / f"segment-{segment}"
