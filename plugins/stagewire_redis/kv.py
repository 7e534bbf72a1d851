"""Values in Redis."""

from __future__ import annotations

import secrets
from types import TracebackType
from typing import Self

from stagewire import MAX_VALUE, Buffer, Closed, Holder, KVError, Lease, LeaseLost
from stagewire_redis.options import RedisKVOptions
from stagewire_redis.scripts import DELETE, PUT
from stagewire_redis.server import Server

UNCOMMITTED_MS = 120_000
"""Parts of a value that never became visible vanish after so long."""

SCAN = 1_000


class RedisHolder:
    """The bytes of a value, fetched; valid whatever happens to the key."""

    def __init__(self, value: bytes | bytearray) -> None:
        self._view: memoryview | None = memoryview(value).toreadonly()

    @property
    def data(self) -> memoryview:
        """The bytes, read-only. Raises `Closed` after release."""
        if self._view is None:
            raise Closed("the holder was released: take its data before, or get the value again")
        return self._view

    def release(self) -> None:
        """Let go of the bytes. Views and slices taken from ``data`` stay valid. Idempotent."""
        self._view = None

    def __len__(self) -> int:
        return self.data.nbytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class RedisKV:
    """A `KVBackend` in Redis. Belongs to one event loop; any number of operations may be under way at once.

    A large value goes in parts that nobody sees, and one atomic script then makes it visible, ties it to its lease and
    removes what was there before.
    """

    def __init__(self, options: RedisKVOptions) -> None:
        self._options = options
        self._server = Server(options)

    @property
    def reference_threshold(self) -> int:
        """From how many bytes on a reference is sent; an option."""
        return int(self._options.reference_threshold)

    async def open(self) -> None:
        """Connect. Raises `KVError`."""
        await self._server.open()

    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        """Store a value; see `KVBackend.put`. Cancelled, it may be stored, and then under its lease."""
        view = memoryview(value).cast("B")
        if view.nbytes > MAX_VALUE:
            raise KVError(
                f"the value of {key!r} has {view.nbytes} bytes: at most {MAX_VALUE} are possible, send it in parts"
            )
        parts = await self._put_parts(view) if view.nbytes > self._options.part_bytes else []
        holder = ("", "") if lease is None else (lease.id, str(lease.generation))
        stored = await self._server.run(PUT, key, *holder, b"" if parts else view, *parts)
        if stored == 1:
            return
        await self._discard(parts)
        if stored == 0 and lease is not None:
            raise LeaseLost(f"lease {lease.id} of generation {lease.generation} has ended: {key!r} was not stored")
        raise KVError(f"the parts of {key!r} expired before it was complete: the server is too slow; put it again")

    async def _put_parts(self, view: memoryview) -> list[str]:
        stem, size = f"{self._server.prefix}p:{secrets.token_hex(12)}", int(self._options.part_bytes)
        names: list[str] = []
        for start in range(0, view.nbytes, size):
            names.append(f"{stem}:{start}")
            await self._server.commands(("SET", names[-1], view[start : start + size], "PX", UNCOMMITTED_MS))
        return names

    async def _discard(self, parts: list[str]) -> None:
        if parts:
            await self._server.commands(("UNLINK", *parts))

    async def get(self, key: str) -> Holder | None:
        """Fetch the value."""
        value, parts = await self._server.commands(
            ("GET", self._name("v", key)), ("LRANGE", self._name("m", key), 0, -1)
        )
        if value is not None:
            return RedisHolder(value)
        return await self._join(parts) if parts else None

    async def _join(self, parts: list[bytes]) -> Holder | None:
        joined = bytearray()
        for part in parts:
            (piece,) = await self._server.commands(("GET", part))
            if piece is None:
                return None  # deleted or replaced while it was read: there is no such value any more
            joined += piece
        return RedisHolder(joined)

    async def delete(self, key: str) -> bool:
        """Remove the key; returns whether there was one."""
        return bool(await self._server.run(DELETE, key))

    async def exists(self, key: str) -> bool:
        """Return whether there is a value."""
        (count,) = await self._server.commands(("EXISTS", self._name("v", key), self._name("m", key)))
        return bool(count)

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with ``prefix``, sorted. Walks the whole key space of the server."""
        found: set[str] = set()
        for kind in ("v", "m"):
            stem = self._name(kind, "")
            pattern, cursor = _literal(stem + prefix) + "*", 0
            while True:
                ((cursor, page),) = await self._server.commands(("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN))
                found.update(name.decode()[len(stem) :] for name in page)
                if not int(cursor):
                    break
        return sorted(found)

    async def close(self) -> None:
        """Close the connections; values and holders stay. Idempotent."""
        await self._server.close()

    def _name(self, kind: str, key: str) -> str:
        return f"{self._server.prefix}{kind}:{key}"


def _literal(text: str) -> str:
    """Escape what a SCAN pattern would take for a wildcard."""
    return "".join(f"\\{character}" if character in "*?[]\\^-" else character for character in text)
