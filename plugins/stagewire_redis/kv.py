"""Values in Redis."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress

from stagewire import MAX_VALUE, Buffer, Closed, Holder, KVError, Lease, LeaseLost, Traffic, ViewHolder
from stagewire_redis.options import RedisKVOptions
from stagewire_redis.scripts import DELETE, DISCARD, PUT
from stagewire_redis.server import Command, Server, milliseconds, probe_server

UNCOMMITTED = 120.0
"""Parts of a value that never became visible vanish after so many seconds, or after the TTL of its lease."""

STAGED = 16 * 1024
"""Larger values are set under a name of their own, which the script only renames; see `scripts.PUT`."""

SCAN = 1_000


class RedisKV:
    """A `KVBackend` in Redis. Belongs to one event loop; any number of operations may be under way at once.

    A large value goes in parts that nobody sees, and one atomic script then makes it visible, ties it to its lease and
    removes what was there before.
    """

    def __init__(self, options: RedisKVOptions) -> None:
        self._options = options
        self._server = Server(options)
        self._discarding: set[asyncio.Task[None]] = set()

    @property
    def reference_threshold(self) -> int:
        """From how many bytes on a reference is sent; an option."""
        return int(self._options.reference_threshold)

    async def open(self) -> None:
        """Connect. Raises `KVError`."""
        await self._server.open()

    async def probe(self, traffic: Traffic) -> str:  # noqa: ARG002 — what goes over the transport does not matter here
        """Connect with a connection of its own and write: one that is full or read-only is found. Raises `KVError`."""
        return await probe_server(self._options)

    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        """Store a value; see `KVBackend.put`. Cancelled, it may be stored, and then under its lease."""
        view = memoryview(value).cast("B")
        if view.nbytes > MAX_VALUE:
            raise KVError(
                f"the value of {key!r} has {view.nbytes} bytes: at most {MAX_VALUE} are possible, send it in parts"
            )
        if view.nbytes <= STAGED:
            await self._commit(key, lease, view)
            return
        parts = self._name_parts(view.nbytes)
        try:
            *first, last = self._part_commands(parts, view, lease)
            for commands in first:
                await self._server.commands(*commands)
            await self._commit(key, lease, b"", *parts, after=last)
        except BaseException:
            self._discard(key, parts)
            raise

    def _name_parts(self, size: int) -> list[str]:
        stem = f"{self._server.prefix}p:{secrets.token_hex(12)}"
        return [f"{stem}:{number}" for number in range(-(-size // int(self._options.part_bytes)))]

    def _part_commands(self, names: list[str], view: memoryview, lease: Lease | None) -> Iterator[list[Command]]:
        """Yield what sends each part; it gives those before it time too, so a sender that dies leaves them one span."""
        size, span = int(self._options.part_bytes), UNCOMMITTED if lease is None else min(UNCOMMITTED, lease.ttl)
        expiry = milliseconds(span)
        for number, name in enumerate(names):
            part = ("SET", name, view[number * size : (number + 1) * size], "PX", expiry)
            yield [part, *(("PEXPIRE", earlier, expiry) for earlier in names[:number])]

    async def _commit(
        self, key: str, lease: Lease | None, value: Buffer, *parts: str, after: Sequence[Command] = ()
    ) -> None:
        holder = ("", "") if lease is None else (lease.id, str(lease.generation))
        stored = await self._server.run(PUT, key, *holder, value, *parts, after=after)
        if stored == 0 and lease is not None:
            raise LeaseLost(f"lease {lease.id} of generation {lease.generation} has ended: {key!r} was not stored")
        if stored != 1:
            raise KVError(f"the parts of {key!r} expired before it was complete: the server is too slow; put it again")

    def _discard(self, key: str, parts: list[str]) -> None:
        """Drop parts that did not become visible, in the background: the sender may have been cancelled."""

        async def discard() -> None:
            with suppress(KVError, Closed):  # they expire
                await self._server.run(DISCARD, key, *parts)

        task = asyncio.create_task(discard(), name="redis-discard")
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)

    async def get(self, key: str) -> Holder | None:
        """Fetch the value: one that was whole under the key at some moment of the call."""
        value = await self._server.command("GET", self._name("v", key))
        return await self._get_parts(key) if value is None else ViewHolder(value)

    async def _get_parts(self, key: str) -> Holder | None:
        """Fetch a value in parts, or in one piece if it has become that meanwhile."""
        tried: list[bytes] = []
        while True:
            value, parts = await self._server.commands(
                ("GET", self._name("v", key)), ("LRANGE", self._name("m", key), 0, -1)
            )
            if value is not None:
                return ViewHolder(value)
            if not parts or parts == tried:
                return None
            joined = await self._join(parts)
            if joined is not None:
                return ViewHolder(joined)
            tried = parts  # deleted or replaced while it was read: look again

    async def _join(self, parts: list[bytes]) -> bytes | None:
        pieces: list[bytes] = []
        for part in parts:
            piece = await self._server.command("GET", part)
            if piece is None:
                return None
            pieces.append(piece)
        return b"".join(pieces)

    async def delete(self, key: str) -> bool:
        """Remove the key; returns whether there was one."""
        return bool(await self._server.run(DELETE, key))

    async def exists(self, key: str) -> bool:
        """Return whether there is a value."""
        return bool(await self._server.command("EXISTS", self._name("v", key), self._name("m", key)))

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with ``prefix``, sorted. Walks the whole key space of the server."""
        found: set[str] = set()
        for kind in ("v", "m"):
            stem = self._name(kind, "")
            pattern, cursor = _literal(stem + prefix) + "*", 0
            while True:
                cursor, page = await self._server.command("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN)
                found.update(name.decode()[len(stem) :] for name in page)
                if not int(cursor):
                    break
        return sorted(found)

    async def close(self) -> None:
        """Close the connections; values and holders stay. Idempotent."""
        while self._discarding:
            await asyncio.wait(self._discarding)
        await self._server.close()

    def _name(self, kind: str, key: str) -> str:
        return f"{self._server.prefix}{kind}:{key}"


def _literal(text: str) -> str:
    """Escape what a SCAN pattern would take for a wildcard."""
    return "".join(f"\\{character}" if character in "*?[]\\^-" else character for character in text)
