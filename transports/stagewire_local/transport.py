"""The in-process transport: nothing to install, nothing to connect to, both faces."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stagewire import BatchTransport, ChunkLink, ChunkTransport, Clock, Closed, emit, fallback_logger
from stagewire_local.batches import LocalBatches
from stagewire_local.chunks import LocalChunks
from stagewire_local.options import LocalOptions
from stagewire_local.paths import MakeLog
from stagewire_local.store import ChunkStore, Expiry

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class LocalTransport:
    """A `Transport` for stages that share a process. Values are handed over by reference, never copied.

    Args:
        options: Its bounds; the defaults when left out.
        clock: Monotonic seconds, for expiry and for the times in `stats`. Waiting uses the event loop's own clock.
        log: Where events go; warnings to standard error when left out.
    """

    def __init__(
        self,
        options: LocalOptions | None = None,
        *,
        clock: Clock = time.monotonic,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        options = options or LocalOptions()
        self._log: MakeLog = fallback_logger if log is None else lambda: log
        self._store = ChunkStore(options, clock, self._log, self._report_expiry)
        self._batches = LocalBatches(options, clock, self._log)
        self._closed = False

    async def open(self) -> None:
        """Bind the mailboxes to the running event loop."""
        if self._closed:
            raise Closed("the transport was closed; make a new one")
        self._batches.open()

    def chunks(self, link: ChunkLink) -> ChunkTransport:
        """Return a face of the link; equal links share what they carry, whatever their role. Thread-safe."""
        if self._closed:
            raise Closed("the transport was closed")
        return LocalChunks(link, self._store, self._store.path(link))

    def batches(self) -> BatchTransport:
        """Return the mailboxes."""
        return self._batches

    async def close(self) -> None:
        """Close both faces. Nothing is in flight in one process; what nobody read is reported, and dropped (TR-11)."""
        if self._closed:
            return
        self._closed = True
        for edge, counters in self._store.close().items():
            if counters["unread"]:
                unread, size = counters["unread"], counters["unread_bytes"]
                emit(self._log(), "transport.unread", edge=edge, chunks=unread, bytes=size)
        self._batches.close()

    def stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return the counters per edge and mailbox; an edge and a mailbox of the same name should not exist."""
        return {**self._store.stats(), **self._batches.stats()}

    def _report_expiry(self, expiry: Expiry) -> None:
        emit(
            self._log(),
            "transport.expired",
            edge=expiry.edge,
            request_id=expiry.request,
            chunks=expiry.chunks,
            bytes=expiry.bytes,
        )
