"""Values in memory. What is stored is immutable, so a holder is a view of it and no byte is copied on the way out."""

from __future__ import annotations

from stagewire import MAX_VALUE, Buffer, Closed, Holder, KVError, Lease, ViewHolder
from stagewire_memory.options import MemoryKVOptions
from stagewire_memory.table import LeaseTable


class MemoryKV:
    """A `KVBackend` in this process. Operations never wait, so a cancel cannot fall inside one.

    ``put`` copies what could change under it; ``bytes`` are kept by reference.
    """

    def __init__(self, options: MemoryKVOptions, leases: LeaseTable) -> None:
        self._options = options
        self._leases = leases
        self._values: dict[str, bytes] = {}
        self._used = 0
        self._closed = False
        leases.on_drop(self._drop)

    @property
    def reference_threshold(self) -> int:
        """From how many bytes on a reference is sent; an option."""
        return int(self._options.reference_threshold)

    async def open(self) -> None:
        """There is nothing to connect to."""
        self._enter()

    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        """Store a value; see `KVBackend.put`."""
        self._enter()
        if lease is not None:
            self._leases.require(lease)
        self._check_room(key, value)
        data = bytes(value)
        self._used += len(data) - len(self._values.get(key, b""))
        self._values[key] = data
        if lease is not None:
            self._leases.tie(lease, key)

    async def get(self, key: str) -> Holder | None:
        """Return a view of the value."""
        self._enter()
        value = self._values.get(key)
        return None if value is None else ViewHolder(value)

    async def delete(self, key: str) -> bool:
        """Remove the key; returns whether there was one."""
        self._enter()
        self._leases.untie(key)
        return self._drop(key)

    async def exists(self, key: str) -> bool:
        """Return whether there is a value."""
        self._enter()
        return key in self._values

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with ``prefix``, sorted."""
        self._enter()
        return sorted(key for key in self._values if key.startswith(prefix))

    async def close(self) -> None:
        """Drop all values; holders stay valid. Idempotent."""
        self._closed = True
        self._values.clear()
        self._used = 0

    def _enter(self) -> None:
        if self._closed:
            raise Closed("the KV backend was closed")
        self._leases.tidy()

    def _check_room(self, key: str, value: Buffer) -> None:
        size = memoryview(value).nbytes
        if size > MAX_VALUE:
            raise KVError(f"the value of {key!r} has {size} bytes: at most {MAX_VALUE} are possible, send it in parts")
        used = self._used - len(self._values.get(key, b""))
        if used + size > self._options.max_bytes:
            raise KVError(
                f"the memory store is full: {used} of {int(self._options.max_bytes)} bytes are used and {key!r} needs"
                f" {size}; raise max_bytes, or see why values are not deleted"
            )

    def _drop(self, key: str) -> bool:
        value = self._values.pop(key, None)
        self._used -= len(value or b"")
        return value is not None
