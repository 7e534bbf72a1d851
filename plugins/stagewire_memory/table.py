"""The leases of one App and the keys that are tied to them.

No task sweeps: every operation first ends the leases that are due, and ending one drops its keys. A heap of due times
makes that cheap; a lease has one entry in it, which is corrected when it comes up after a keepalive.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from stagewire import Clock, Lease, LeaseLost


@dataclass(slots=True)
class Record:
    """One live lease."""

    id: str
    generation: int
    ttl: float
    ends_at: float
    keys: set[str] = field(default_factory=set)


class LeaseTable:
    """Live leases; an ended one is gone from it, and its generation never comes back (LS-7)."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._records: dict[str, Record] = {}
        self._due: list[tuple[float, str]] = []
        self._owners: dict[str, Record] = {}
        self._generations = itertools.count(1)
        self._droppers: list[Callable[[str], object]] = []

    def on_drop(self, drop: Callable[[str], object]) -> None:
        """Ask to be told each key whose lease ended."""
        self._droppers.append(drop)

    def grant(self, ttl: float) -> Lease:
        """Make a lease."""
        self.tidy()
        generation = next(self._generations)
        record = Record(f"lease-{generation}", generation, ttl, self.clock() + ttl)
        self._records[record.id] = record
        heapq.heappush(self._due, (record.ends_at, record.id))
        return Lease(record.id, generation, ttl, record.ends_at)

    def keepalive(self, lease: Lease) -> Lease:
        """Extend a lease that has not ended."""
        record = self.require(lease)
        record.ends_at = self.clock() + record.ttl
        return Lease(record.id, record.generation, record.ttl, record.ends_at)

    def find(self, lease: Lease) -> Record | None:
        """Return the lease's record, if this generation of it is alive."""
        self.tidy()
        record = self._records.get(lease.id)
        return record if record is not None and record.generation == lease.generation else None

    def require(self, lease: Lease) -> Record:
        """Return the lease's record or raise `LeaseLost`."""
        record = self.find(lease)
        if record is None:
            raise LeaseLost(f"lease {lease.id} of generation {lease.generation} has ended: take a new one")
        return record

    def tie(self, lease: Lease, key: str) -> None:
        """Tie a key to a live lease and to no other."""
        record = self.require(lease)
        self.untie(key)
        record.keys.add(key)
        self._owners[key] = record

    def untie(self, key: str) -> None:
        """Take a key out of its lease's hands."""
        record = self._owners.pop(key, None)
        if record is not None:
            record.keys.discard(key)

    def revoke(self, lease: Lease) -> None:
        """End a lease; one that has ended stays so."""
        record = self.find(lease)
        if record is not None:
            self._end(record)

    def tidy(self) -> None:
        """End the leases that are due."""
        now = self.clock()
        while self._due and self._due[0][0] <= now:
            record = self._records.get(heapq.heappop(self._due)[1])
            if record is None:
                continue
            if record.ends_at > now:
                heapq.heappush(self._due, (record.ends_at, record.id))
            else:
                self._end(record)

    def _end(self, record: Record) -> None:
        del self._records[record.id]
        for key in record.keys:
            del self._owners[key]
            for drop in self._droppers:
                drop(key)
