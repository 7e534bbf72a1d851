"""The scheduling thread's side of sending: it snapshots and enqueues, nothing else (CH-1)."""

from __future__ import annotations

from typing import Any

from stagewire import Closed, CodecError, describe
from stagewire.codec import weigh
from stagewire_chunks.backlog import waiting_chunks
from stagewire_chunks.context import Context
from stagewire_chunks.lanes import CANCEL, CHUNK, FINAL, Item, Lane, Use
from stagewire_chunks.outbox import Outbox
from stagewire_chunks.snapshot import snapshot


class Sender:
    """Saves and cancels. Any thread may call any method; none waits for anything but the outbox's lock."""

    def __init__(self, outbox: Outbox, context: Context) -> None:
        self._outbox = outbox
        self._backlog = outbox.backlog
        self._clock = context.clock
        self._linger = context.options.cancel_linger
        self._keeps_runs = context.port.keeps_runs

    def save(self, request: str, payload: Any, *, is_final: bool) -> None:
        """Enqueue one chunk. See `ChunkAdapter.save_async`."""
        try:
            copied = snapshot(payload)
        except Exception as error:
            raise _uncopied(request, error) from error
        size = weigh(copied)
        box = self._outbox
        with box.lock:
            if box.closed:
                raise Closed(f"the ChunkAdapter was stopped: it takes no further chunk of request {request!r}")
            lane = self._backlog.lanes.get(request)
            use = lane.use if lane is not None else None
            begins = use is None or use.closed
            if begins and box.failures.absorbs(request, is_final=is_final):
                return
            if not is_final:
                box.room.admit(request, lane, size)
            if begins and use is not None and self._ends_cancelled(use, is_final=is_final):
                return
            if use is None or begins:
                use = self._begin(request)
            use.closed = is_final
            if self._backlog.add(Item(use, copied, size, FINAL if is_final else CHUNK)):
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

    def _begin(self, request: str) -> Use:
        lane = self._backlog.lane(request)
        lane.use = use = Use(lane)
        return use

    def _ends_cancelled(self, use: Use, *, is_final: bool) -> bool:
        """Return whether a save is the final that a cancelled use still waits for.

        Any other save begins the next use. A transport that keeps runs then needs the CANCEL to end the old one; on any
        other it would lie in the way of the next use, whose caller has cleaned up the old one at both ends.
        """
        lane, marker = use.lane, use.marker
        if marker is None:
            return False
        use.marker = None
        if marker in lane.items:
            marker.kind = FINAL if is_final else CANCEL
            use.linger = 0.0
            if not is_final and not self._keeps_runs:
                self._backlog.drop([marker], lane)
            self._backlog.unpark(lane)
            self._outbox.wake()
        return is_final

    def _mark_end(self, use: Use) -> None:
        use.closed = True
        use.linger = self._clock() + self._linger
        use.marker = Item(use, None, 0, CANCEL)
        self._backlog.add(use.marker)

    def _empty_final(self, lane: Lane) -> None:
        """Let go of a waiting final's data; in hand, the step looks at the cancel itself."""
        final = lane.items[-1] if lane.items else None
        if final is not None and final.use is lane.use:
            self._backlog.empty(final)


def _uncopied(request: str, error: Exception) -> CodecError:
    return CodecError(
        f"the payload of request {request!r} cannot be copied ({describe(error)}): save plain data,"
        " or give the object away with HandOver(value)"
    )
