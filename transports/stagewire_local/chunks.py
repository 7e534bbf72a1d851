"""The blocking face of one link. Messages travel by reference: what is got is the very object that was put."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from stagewire import ChunkKey, ChunkLink, ChunkMessage, Closed, Permanent, describe, emit
from stagewire.codec import weigh
from stagewire_local.shelves import Path
from stagewire_local.store import ChunkStore, Parcel

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

WakeUp = Callable[[], None]

MakeLog = Callable[[], "FilteringBoundLogger"]
"""Returns the logger; asked only when there is something to report."""


class Hints:
    """The wake-ups of one path's readers. A hint that raises is reported and harms neither the put nor other hints."""

    def __init__(self, edge: str, log: MakeLog) -> None:
        self._edge = edge
        self._log = log
        self._callbacks: dict[object, WakeUp] = {}

    def set(self, owner: object, callback: WakeUp) -> None:
        self._callbacks = {**self._callbacks, owner: callback}

    def drop(self, owner: object) -> None:
        self._callbacks = {key: value for key, value in self._callbacks.items() if key is not owner}

    def give(self) -> None:
        for callback in self._callbacks.values():
            try:
                callback()
            except Exception as error:  # noqa: BLE001 — the put is done; a reader's fault is not the writer's
                emit(self._log(), "transport.wakeup_failed", edge=self._edge, cause=describe(error))


class LocalChunks:
    """A `ChunkTransport` over the transport's store. Usable from any thread, before and without ``open``.

    The reader's ``cleanup`` gives the request's runs up; on a link of role ``send`` there is nothing to drop, because a
    chunk that was put belongs to the reader.
    """

    def __init__(self, link: ChunkLink, store: ChunkStore, hints: Hints, settle: Callable[[], None]) -> None:
        self._link = link
        self._path = Path(link.edge, link.source, link.target, link.replica)
        self._store = store
        self._hints = hints
        self._settle = settle
        self._closed = False

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        """Hand one chunk over, at once or not at all; see `ChunkTransport.put`."""
        error = self.put_many(((key, message),))[0]
        if error is not None:
            raise error

    def put_many(self, items: Iterable[tuple[ChunkKey, ChunkMessage]]) -> list[Exception | None]:
        """Hand several chunks over in order, each by itself; returns one result each (TR-9)."""
        self._use("receive", "put to")
        results = self._store.put(self._path, [Parcel(key, message, weigh(message["data"])) for key, message in items])
        if None in results:
            self._hints.give()
        self._settle()
        return results

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        """Take a chunk that has arrived; see `ChunkTransport.get`."""
        self._use("send", "get from")
        message = self._store.get(self._path, key)
        self._settle()
        return message

    def cleanup(self, request_id: str) -> None:
        """Give the request up on the receiving side; see `ChunkTransport.cleanup`."""
        self._check_open()
        if self._link.role != "send":
            self._store.cleanup(self._path, request_id)
            self._settle()

    def set_wakeup(self, callback: WakeUp) -> None:
        """Ask for a call, on the putting thread, after each put to this link. One callback per face."""
        self._hints.set(self, callback)

    def close(self) -> None:
        """Close this face. What was put stays for the reader, or for its successor, until it expires. Idempotent."""
        self._closed = True
        self._hints.drop(self)

    def _use(self, forbidden: str, verb: str) -> None:
        self._check_open()
        if self._link.role == forbidden:
            raise Permanent(
                f"cannot {verb} edge {self._link.edge!r}: the link's role is {forbidden!r}; ask the transport for a"
                " link of the other role, or of role 'both'"
            )

    def _check_open(self) -> None:
        if self._closed:
            raise Closed(f"the chunk face of edge {self._link.edge!r} was closed")
