"""The scheduling thread's side of sending: it snapshots and enqueues, nothing else (CH-1)."""

from __future__ import annotations

from typing import Any

from stagewire import Clock, Closed, CodecError, describe
from stagewire.codec import weigh
from stagewire_chunks.backlog import waiting_chunks
from stagewire_chunks.lanes import Item, Kind, Lane, Use
from stagewire_chunks.outbox import Outbox
from stagewire_chunks.snapshot import snapshot


class Sender:
    """Saves and cancels. Any thread may call any method; none waits for anything but the outbox's lock."""

    def __init__(self, outbox: Outbox, clock: Clock, linger: float) -> None:
        self._outbox = outbox
        self._backlog = outbox.backlog
        self._clock = clock
        self._linger = linger

    def save(self, request: str, payload: Any, *, is_final: bool) -> None:
        """Enqueue one chunk. See `ChunkAdapter.save_async`."""
        copied = _copy(request, payload)
        size = weigh(copied)
        box = self._outbox
        with box.lock:
            if box.closed:
                raise Closed(f"the ChunkAdapter was stopped: it takes no further chunk of request {request!r}")
            if box.failures.absorbs(request, is_final=is_final):
                return
            if not is_final:
                box.room.admit(request, size)
            if self._ends_cancelled(request, is_final=is_final):
                return
            use = self._open_use(request)
            use.closed = is_final
            self._backlog.add(Item(use, copied, size, Kind.FINAL if is_final else Kind.CHUNK))
            box.wake()

    def cancel(self, request: str) -> None:
        """Cancel the use that the id stands for now. See `ChunkAdapter.cancel_sender`."""
        box = self._outbox
        with box.lock:
            box.failures.release(request)
            box.room.forget(request)
            lane = self._backlog.lanes.get(request)
            if lane is None or lane.use is None or lane.use.cancelled:
                return
            lane.use.cancelled = True
            self._backlog.drop(waiting_chunks(lane.use), lane)
            if lane.use.closed:
                self._empty_final(lane)
            else:
                self._mark_end(lane.use)
            self._backlog.unpark(lane)
            box.wake()
            box.changed()

    def _open_use(self, request: str) -> Use:
        lane = self._backlog.lane(request)
        if lane.use is None or lane.use.closed:
            lane.use = Use(lane)
        return lane.use

    def _ends_cancelled(self, request: str, *, is_final: bool) -> bool:
        """Return whether a save is the final that a cancelled use still waits for.

        Any other save begins the next use: the caller is done with the old one at both ends, so its CANCEL is not put.
        """
        lane = self._backlog.lanes.get(request)
        use = lane.use if lane else None
        if lane is None or use is None or use.marker is None:
            return False
        marker, use.marker = use.marker, None
        waits = marker in lane.items
        if is_final and waits:
            marker.kind, marker.not_before = Kind.FINAL, 0.0
            self._backlog.unpark(lane)
            self._outbox.wake()
        elif waits:
            self._backlog.drop([marker], lane)
        return is_final

    def _mark_end(self, use: Use) -> None:
        use.closed = True
        use.marker = Item(use, None, 0, Kind.CANCEL, not_before=self._clock() + self._linger)
        self._backlog.add(use.marker)

    def _empty_final(self, lane: Lane) -> None:
        """Let go of a waiting final's data; in hand, the step looks at the cancel itself."""
        final = lane.items[-1] if lane.items else None
        if final is not None and final.use is lane.use:
            self._backlog.count(lane, 0, -final.size)
            final.payload, final.size = None, 0


def _copy(request: str, payload: Any) -> Any:
    try:
        return snapshot(payload)
    except Exception as error:
        raise CodecError(
            f"the payload of request {request!r} cannot be copied ({describe(error)}): save plain data,"
            " or give the object away with HandOver(value)"
        ) from error
