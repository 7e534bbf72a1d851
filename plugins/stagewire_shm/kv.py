"""Values in shared memory."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from functools import partial

from stagewire import MAX_VALUE, Buffer, Clock, Holder, KVError, Lease, ViewHolder
from stagewire_shm import ledger, mapping
from stagewire_shm.faults import explain
from stagewire_shm.index import Transaction
from stagewire_shm.locks import open_lock, try_lock
from stagewire_shm.options import ShmKVOptions
from stagewire_shm.segments import Segments
from stagewire_shm.store import Store


class ShmKV:
    """A `KVBackend` for the processes of one user on one host. Belongs to one event loop.

    A put copies the value into a segment that nobody sees, and one transaction then makes it visible under its lease.
    A get maps the segment: the holder's bytes are the writer's, and the segment is not used again while anything
    refers to them.
    """

    def __init__(self, options: ShmKVOptions, clock: Clock) -> None:
        self._options = options
        self._store = Store(options, clock, options.threads)
        self._segments = Segments(self._store.place, int(options.max_bytes))
        self._users = -1
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def reference_threshold(self) -> int:
        """From how many bytes on a reference is sent; an option."""
        return int(self._options.reference_threshold)

    async def open(self) -> None:
        """Make the store, or open the one that is there; clean up what dead processes left. Raises `KVError`."""
        await self._store.open()
        try:
            await self._store.run(self._join)
        except BaseException:
            await self.close()
            raise
        self._sweeper = asyncio.create_task(self._keep_sweeping(), name="shm-sweeper")

    def _join(self, stop: threading.Event) -> None:
        try:
            self._check_size()
            self._users = open_lock(self._store.place / "users")
        except OSError as error:
            raise explain(self._store.place, error) from error
        try_lock(self._users, shared=True)
        self._sweep(stop)

    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        """Store a value; see `KVBackend.put`. Cancelled, it ends when the value is no longer read."""
        view = memoryview(value).cast("B")
        if view.nbytes > MAX_VALUE:
            raise KVError(
                f"the value of {key!r} has {view.nbytes} bytes: at most {MAX_VALUE} are possible, send it in parts"
            )
        await self._store.run(partial(self._put, key, view, lease))

    def _put(self, key: str, value: memoryview, lease: Lease | None, stop: threading.Event) -> None:
        if not value.nbytes:
            with self._store.index.transaction(stop) as work:
                _show(work, key, None, 0, lease)
            return
        with self._store.index.transaction(stop) as work:
            ledger.end_due(work)
            if lease is not None:
                ledger.require(work, lease)
            segment, descriptor = self._segments.reserve(work, key, value.nbytes)
        try:
            mapping.write(descriptor, value, stop)
            with self._store.index.transaction(stop) as work:
                _show(work, key, segment, value.nbytes, lease)
                work.after.append(partial(mapping.unlock, descriptor))
        except BaseException as error:
            self._abandon(segment, descriptor)
            if isinstance(error, OSError):
                raise explain(self._store.place, error) from error
            raise

    def _abandon(self, segment: int, descriptor: int) -> None:
        """Free a segment that did not become visible; where that fails, the next sweep does it."""
        mapping.unlock(descriptor)
        with suppress(KVError), self._store.index.transaction(threading.Event()) as work:
            self._segments.free(work, segment)

    async def get(self, key: str) -> Holder | None:
        """Map the value. The holder has a file descriptor until nothing refers to its bytes any more."""
        found = await self._store.run_short(partial(self._find, key))
        if found is None:
            return None
        descriptor, size = found
        if descriptor is None:
            return ViewHolder(b"")
        if size <= mapping.PIECE:
            return self._map(descriptor, size)
        return await self._store.run(lambda _stop: self._map(descriptor, size))

    def _find(self, key: str, stop: threading.Event) -> tuple[int | None, int] | None:
        """Return a descriptor that holds the value's segment, and its size; an empty value has no segment."""
        with self._store.index.transaction(stop) as work:
            found = ledger.find(work, key)
            if found is None:
                return None
            segment, size = found
            return None if segment is None else self._segments.share(segment, size), size

    def _map(self, descriptor: int, size: int) -> Holder:
        try:
            return ViewHolder(mapping.read(descriptor, size))
        except OSError as error:
            raise explain(self._store.place, error) from error

    async def delete(self, key: str) -> bool:
        """Remove the key; returns whether there was one."""

        def action(work: Transaction) -> bool:
            ledger.end_due(work)
            return ledger.drop(work, key)

        return await self._store.transact(action)

    async def exists(self, key: str) -> bool:
        """Return whether there is a value."""
        return await self._store.transact(lambda work: ledger.find(work, key) is not None)

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with ``prefix``, sorted."""
        return [key for key in await self._store.transact(ledger.keys) if key.startswith(prefix)]

    async def close(self) -> None:
        """Close this process's access; values stay for the others, and the last one gives the pool back. Idempotent."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
            self._sweeper = None
        users, self._users = self._users, -1
        if users >= 0:
            if try_lock(users):
                with suppress(KVError):
                    await self._store.run(partial(self._sweep, idle=0.0))
            os.close(users)
        await self._store.close()

    def _check_size(self) -> None:
        """Refuse a budget that the file system cannot hold: found out later, it would be in the middle of the work."""
        system = os.statvfs(self._store.place)
        size, budget = system.f_blocks * system.f_frsize, int(self._options.max_bytes)
        if size and budget > size:
            message = f"its file system has {size} bytes: enlarge it (docker run --shm-size) or lower max_bytes"
            raise KVError(f"shared memory {self._store.place}: max_bytes is {budget}, but {message}")

    async def _keep_sweeping(self) -> None:
        while True:
            await asyncio.sleep(self._options.sweep)
            with suppress(KVError):  # the next operation meets it too, and says so to somebody
                await self._store.run(self._sweep)

    def _sweep(self, stop: threading.Event, idle: float | None = None) -> None:
        """Take back what dead processes and ended leases left, and what the pool has not used for long."""
        with self._store.index.transaction(stop) as work:
            ledger.end_due(work)
            self._segments.reclaim(work)
            self._segments.give_back(work, work.now - (self._options.idle if idle is None else idle))
            self._segments.remove_strays(work)


def _show(work: Transaction, key: str, segment: int | None, size: int, lease: Lease | None) -> None:
    """Make a value visible, if its lease has not ended (LS-7)."""
    ledger.end_due(work)
    if lease is not None:
        ledger.tie(work, lease, key)
    ledger.place(work, key, segment, size)
