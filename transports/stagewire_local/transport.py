"""The in-process transport: nothing to install, nothing to connect to, both faces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stagewire import BatchTransport, ChunkLink, ChunkTransport, Clock, Closed
from stagewire_local.batches import LocalBatches
from stagewire_local.chunks import Hints, LocalChunks
from stagewire_local.options import LocalOptions
from stagewire_local.shelves import Path
from stagewire_local.store import ChunkStore


class LocalTransport:
    """A `Transport` for stages that share a process. Values are handed over by reference, never copied.

    Args:
        options: Its bounds; the defaults when left out.
        clock: Monotonic seconds, for expiry and for the times in `stats`. Waiting uses the event loop's own clock.
        report: Takes warnings: an event's name and its fields, as a structlog logger's ``warning`` does.
    """

    def __init__(self, options: LocalOptions | None = None, *, clock: Clock, report: Callable[..., Any]) -> None:
        options = options or LocalOptions()
        self._report = report
        self._store = ChunkStore(options, clock)
        self._batches = LocalBatches(options, clock, report)
        self._hints: dict[Path, Hints] = {}
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
        hints = self._hints.setdefault(Path(link.edge, link.source, link.target, link.replica), Hints(self._report))
        return LocalChunks(link, self._store, hints, self._report_expiries)

    def batches(self) -> BatchTransport:
        """Return the mailboxes."""
        return self._batches

    async def close(self) -> None:
        """Close both faces. Nothing is in flight in one process; what nobody read is reported, and dropped (TR-11)."""
        if self._closed:
            return
        self._closed = True
        self._report_expiries()
        for edge, counters in self._store.close().items():
            if counters["unread"]:
                self._report("transport.unread", edge=edge, chunks=counters["unread"], bytes=counters["unread_bytes"])
        self._batches.close()
        self._hints.clear()

    def stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return the counters per edge and mailbox; an edge and a mailbox of the same name should not exist."""
        return {**self._store.stats(), **self._batches.stats()}

    def _report_expiries(self) -> None:
        for expiry in self._store.take_expiries():
            place = expiry.place
            self._report(
                "transport.expired",
                edge=place.path.edge,
                request_id=place.request,
                chunks=expiry.chunks,
                bytes=expiry.bytes,
            )
