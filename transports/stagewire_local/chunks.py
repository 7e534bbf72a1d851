"""The blocking face of one link. Messages travel by reference: what is got is the very object that was put."""

from __future__ import annotations

from collections.abc import Sequence

from stagewire import ChunkKey, ChunkLink, ChunkMessage, Closed, Permanent
from stagewire_local.paths import Path, WakeUp
from stagewire_local.store import ChunkStore


class LocalChunks:
    """A `ChunkTransport` over the transport's store. Usable from any thread, before and without ``open``.

    The reader's ``cleanup`` gives the request's runs up; on a link of role ``send`` there is nothing to drop, because a
    chunk that was put belongs to the reader.
    """

    def __init__(self, link: ChunkLink, store: ChunkStore, path: Path) -> None:
        self._link = link
        self._path = path
        self._store = store
        self._may_put = link.role != "receive"
        self._may_get = link.role != "send"
        self._closed = False

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Hand one chunk over, at once or not at all; see `ChunkTransport.put`."""
        if not self._may_put:
            raise self._misuse("put to")
        self._store.put(self._path, key, message)
        if self._path.hints:
            self._path.wake((key.request,))

    def put_many(self, items: Sequence[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        """Hand several chunks over in order, with one wake-up; returns one result each (TR-9)."""
        if not self._may_put:
            raise self._misuse("put to")
        results = self._store.put_many(self._path, items)
        if self._path.hints and None in results:
            self._path.wake({key.request for key, _ in items})
        return results

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Take a chunk that has arrived; see `ChunkTransport.get`."""
        if not self._may_get:
            raise self._misuse("get from")
        return self._store.get(self._path, key)

    def get_many(self, key: ChunkKey, limit: int) -> list[ChunkMessage]:
        """Take a chunk and those right after it, as many as have arrived; see `ChunkTransport`."""
        if not self._may_get:
            raise self._misuse("get from")
        return self._store.get_many(self._path, key, limit)

    def cleanup(self, request_id: str) -> None:
        """Give the request up on the receiving side; see `ChunkTransport.cleanup`."""
        if self._closed:
            raise self._misuse("clean up")
        if self._may_get:
            self._store.cleanup(self._path, request_id)

    def set_wakeup(self, callback: WakeUp) -> None:
        """Ask for a call, on the putting thread, after each put to this link. One callback per face."""
        self._path.set_hint(self, callback)

    def close(self) -> None:
        """Close this face. What was put stays for the reader, or for its successor, until it expires. Idempotent."""
        self._closed = True
        self._may_put = self._may_get = False
        self._path.set_hint(self, None)

    def _misuse(self, verb: str) -> Closed | Permanent:
        if self._closed:
            return Closed(f"cannot {verb} edge {self._link.edge!r}: this face of it was closed")
        return Permanent(
            f"cannot {verb} edge {self._link.edge!r}: the link's role is {self._link.role!r}; ask the transport for a"
            " link of the other role, or of role 'both'"
        )
