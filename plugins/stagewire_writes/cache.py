"""Pieces of files in the KV backend (S3-3, S3-4): leased, bounded, and never in a reader's way."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from stagewire import Closed, CodecError, KVError, LeaseLost
from stagewire.codec import decode, encode, join
from stagewire.lifecycle import TaskRegistry

if TYPE_CHECKING:
    from stagewire_writes.controller import WriteController

REFILLS = 4
"""Pieces that are stored at once; further ones are left out."""

PREFIX = "piece-"


class PieceCache:
    """What this controller read lately. A value is one encoded map; all of it is checked before a byte is used (S3-4).

    Args:
        controller: Whose KV backend and lease.
        limit: Bytes that are kept; 0 turns it off.
    """

    def __init__(self, controller: WriteController, limit: int) -> None:
        self._controller = controller
        self._limit = limit
        self._sizes: OrderedDict[str, tuple[int, tuple[str, str]]] = OrderedDict()
        self._used = 0
        self._tasks = TaskRegistry("cached pieces", log=controller.log)
        self.hits = self.misses = 0
        self._unsubscribe = controller.changes.subscribe(self._changed)

    async def get(self, export: str, path: str, version: str, index: int) -> memoryview | None:
        """Return a view of a cached piece, or ``None``: it is not there, damaged, or the store does not answer."""
        if not self._limit:
            return None
        key = _key(export, path, version, index)
        data = await self._fetch(key)
        if data is None:
            self.misses += 1
        else:
            self.hits += 1
            if key in self._sizes:
                self._sizes.move_to_end(key)
        return data

    def refill(self, export: str, path: str, version: str, index: int, data: memoryview) -> None:
        """Store a piece beside the work; left out while several are being stored. Never waits."""
        if self._limit and len(data) <= self._limit and len(self._tasks) < REFILLS and not self._tasks.closed:
            key = _key(export, path, version, index)
            self._tasks.spawn(self._store(key, (export, path), data), name=f"cache {key}")

    async def close(self) -> None:
        """Store no more, and remove what is stored as well as that can be done. Idempotent."""
        self._unsubscribe()
        self._tasks.close()
        self._tasks.cancel_all()
        await self._tasks.join()
        for key in list(self._sizes):
            await self._remove(key)

    async def _fetch(self, key: str) -> memoryview | None:
        try:
            holder = await self._controller.kv.get(key)
            if holder is None:
                return None
            with holder:
                return _content(decode(holder.data, views=True))
        except (KVError, CodecError, Closed):
            return None

    async def _store(self, key: str, file: tuple[str, str], data: memoryview) -> None:
        try:
            lease = await self._controller.lease.acquire()
            await self._controller.kv.put(key, join(encode({"data": data})), lease)
        except (KVError, LeaseLost, Closed):
            return
        self._sizes[key] = len(data), file
        self._used += len(data)
        while self._used > self._limit:
            await self._remove(next(iter(self._sizes)))

    async def _remove(self, key: str) -> None:
        size, _file = self._sizes.pop(key, (0, ("", "")))
        self._used -= size
        try:
            await self._controller.kv.delete(key)
        except (KVError, Closed):
            return  # it ends with the lease

    def _changed(self, export: str, path: str) -> None:
        """Drop the pieces of a file that was written or removed."""
        stale = [key for key, (_size, file) in self._sizes.items() if file == (export, path)]
        for key in stale:
            if not self._tasks.closed:
                self._tasks.spawn(self._remove(key), name=f"drop {key}")


def _content(value: Any) -> memoryview | None:
    data = value.get("data") if isinstance(value, dict) else None
    return memoryview(data) if isinstance(data, bytes | memoryview) else None


def _key(export: str, path: str, version: str, index: int) -> str:
    return PREFIX + blake2b(f"{export}\0{path}\0{version}\0{index}".encode(), digest_size=20).hexdigest()
