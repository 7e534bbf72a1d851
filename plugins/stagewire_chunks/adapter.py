"""ChunkAdapter: one stage's end of a chunk edge, or of two: sending downstream, receiving from upstream."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Self

from stagewire import ChunkKey, ChunkMessage, Clock, StageId
from stagewire_chunks.context import Context, Waiter
from stagewire_chunks.delivery import BuildPayload, Delivery
from stagewire_chunks.inbox import Inbox, Registration
from stagewire_chunks.options import ChunkOptions
from stagewire_chunks.outbox import Outbox
from stagewire_chunks.port import MinimalTransport, Port
from stagewire_chunks.receiver import Receiver
from stagewire_chunks.sender import Sender
from stagewire_chunks.settlement import Settlement
from stagewire_chunks.stopping import Stopper, StopReport
from stagewire_chunks.watch import Watch
from stagewire_chunks.worker import Worker

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class ChunkAdapter:
    """Streams the chunks of many requests from stage to stage, without the scheduling thread ever waiting for it.

    Every method may be called from any thread. The hints ``on_ready`` and ``on_room`` are called from the adapter's
    threads, with no lock held, must return at once, and may come for nothing: after ``on_ready`` there may be something
    for `poll_ready` or `poll_failed`; after ``on_room(request)`` a refused `save_async` may be tried again;
    ``on_sent(request)`` says that the terminal of a use of the id was put, and everything before it.

    Args:
        transport: Anything with ``put(key, message)`` and ``get(key) -> message | None``. ``put_many``, ``cleanup`` and
            ``set_wakeup`` of `stagewire.ChunkTransport` are used where it has them.
        stage_id: This stage; part of the keys that it puts.
        src_stage_id: The stage that it receives from; needed for `load_async` only.
        build_payload: Makes what travels out of a saved payload, on the SAVE thread (CH-4); by default the payload.
        options: Bounds, retries, pacing, deadlines.
        edge: What errors and events call the edge; by default made of the two stages.
        on_ready: See above.
        on_room: See above.
        on_sent: See above.
        log: Where `stagewire.emit` writes the events ``chunk.…``.
        clock: Monotonic seconds.
        waiter: How the threads wait on their conditions.
        threads: ``False``: no threads; the owner calls `step_save` and `step_receive`, as deterministic tests do.
    """

    def __init__(
        self,
        transport: MinimalTransport,
        stage_id: StageId,
        src_stage_id: StageId | None = None,
        build_payload: BuildPayload | None = None,
        *,
        options: ChunkOptions | None = None,
        edge: str | None = None,
        on_ready: Callable[[], object] | None = None,
        on_room: Callable[[str], object] | None = None,
        on_sent: Callable[[str], object] | None = None,
        log: FilteringBoundLogger | None = None,
        clock: Clock = time.monotonic,
        waiter: Waiter = threading.Condition.wait,
        threads: bool = True,
    ) -> None:
        options = options or ChunkOptions()
        watch = Watch(log, stage_id, edge or f"{stage_id if src_stage_id is None else src_stage_id}->{stage_id}")
        self._context = context = Context(stage_id, Port(transport), options, clock, waiter, watch)
        self._source = src_stage_id
        self._outbox = outbox = Outbox(context)
        self._inbox = inbox = Inbox(context)
        self._sender = Sender(outbox, context)
        self._settlement = Settlement(outbox, context, on_room, on_ready, on_sent)
        self._delivery = Delivery(outbox, self._settlement, context, build_payload)
        self._receiver = Receiver(inbox, context, on_ready)
        self._threads = threads
        self._save = Worker(f"chunks-save-{stage_id}", self.step_save, outbox.sleep, lambda: outbox.stopped)
        self._recv = Worker(f"chunks-recv-{stage_id}", self.step_receive, inbox.sleep, lambda: inbox.stopped)
        self._stopper = Stopper(outbox, inbox, (self._save, self._recv), self._drain, watch)
        if src_stage_id is not None:
            context.port.call_when_news(inbox.hint)

    def save_async(self, req: str, payload: Any, is_final: bool) -> None:  # noqa: FBT001 — the source's signature
        """Enqueue a snapshot of one chunk and return at once (CH-1, CH-2); ``is_final`` ends this use of the id (CH-7).

        The SAVE thread builds and puts it. A final is admitted whatever waits already. Of a request that failed, what
        comes up to and including its final is dropped, until `poll_failed` has reported the failure.

        Raises:
            TransportFull: A bound is reached (CH-19); see `wait_for_room` and ``on_room``.
            CodecError: The payload cannot be copied.
            Closed: The adapter was stopped.
        """
        self._sender.save(req, payload, is_final=is_final)
        if self._threads and not self._save.started:
            self._save.start()

    def cancel_sender(self, req: str) -> None:
        """Cancel the request's current use: its waiting chunks are dropped, its terminal is still put (CH-6).

        That is the caller's final, without data, if it is saved already or is the next thing saved, within
        ``cancel_linger``; otherwise ``{"data": None, "finished": True, "cancelled": True}``. A chunk saved next begins
        a new use of the id (on a transport without ``cleanup`` no terminal is put for the cancelled one then, which
        would be mistaken for the new one's: its receiver must have been cleaned up). For an id that is not in use this
        does nothing, now or later (CH-14).
        """
        self._sender.cancel(req)

    def wait_for_room(self, req: str, timeout: float) -> bool:
        """Block until a chunk of the request would be admitted; false after ``timeout`` seconds or a stop (CH-19).

        After a refusal that is a chunk as large as the one that was refused.
        """
        return self._outbox.wait_for_room(req, timeout)

    def poll_failed(self) -> dict[str, Exception]:
        """Take what failed on the sending side since the last call, by request: `RequestFailed` with its cause (CH-15).

        The receiver has been or is being told by an ERROR terminal, if one can be put. The id may be used again.
        """
        with self._outbox.lock:
            return self._outbox.failures.take()

    def load_async(self, req: str, *, stall_timeout: float | None = None) -> None:
        """Register a request to be received from its chunk 0 on; does nothing if it is registered (CH-8).

        After ``stall_timeout`` seconds without a chunk (default: the option of that name; `math.inf`: never) it ends in
        an ERROR terminal (CH-16).

        Raises:
            ValueError: The adapter was made without a ``src_stage_id``.
            Closed: The adapter was stopped.
        """
        context = self._context
        if self._source is None:
            raise ValueError(f"the ChunkAdapter of stage {context.stage!r} cannot load: give it a src_stage_id")
        stall = context.options.stall_timeout if stall_timeout is None else stall_timeout
        self._inbox.register(Registration(req, ChunkKey(req, self._source, 0), stall, context.clock()))
        if self._threads and not self._recv.started:
            self._recv.start()

    def poll_ready(self, *, leave: Collection[str] = ()) -> dict[str, list[ChunkMessage]]:
        """Take what was received since the last call: per request the messages in order (CH-9).

        The last message of a request is its one terminal (CH-18): END, CANCEL (``"cancelled"`` in it) or ERROR
        (``"error"`` in it). The requests in ``leave`` keep theirs: once their window is full no more is got for them,
        and so the transport, and in the end their sender, feels it.
        """
        return self._inbox.take(leave)

    def cleanup_receiver(self, req: str) -> None:
        """Forget a request: when this returns nothing of its registration can appear any more (CH-10).

        What the transport holds for a request that had not ended is dropped, too. Waits for at most about 10 ms, and
        only while a get of this very request is under way.
        """
        if self._inbox.unregister(req):
            self._receiver.drop(req)

    def stop(self, drain: bool = False, timeout: float = 2.0) -> StopReport:  # noqa: FBT001, FBT002 — as the source calls it
        """Stop both threads, within about ``timeout`` seconds even if the transport blocks (CH-12).

        With ``drain`` what was saved is put first, as far as the time suffices (CH-21). What was received stays to be
        polled. Idempotent: a further call, also a concurrent one, returns the report of the first.
        """
        return self._stopper.stop(drain=drain, timeout=timeout)

    def assert_quiescent(self, timeout: float = 1.0) -> None:
        """Raise `AssertionError` unless every per-request table is empty within ``timeout`` seconds (CH-20).

        Failures that `poll_failed` has not taken do not count: they are reports, bounded in number.
        """
        deadline = time.monotonic() + (timeout if self._threads else 0.0)
        while leftovers := {name: count for name, count in self._tables().items() if count}:
            if time.monotonic() >= deadline:
                raise AssertionError(f"not quiescent after {timeout:g} s: {leftovers}")
            time.sleep(0.001)

    def stats(self) -> dict[str, int]:
        """Return the sizes of every table and the counts of what was done so far."""
        settled, received = self._settlement.counts, self._receiver.counts
        return {
            **self._tables(),
            **self._outbox.counts(),
            **asdict(settled),
            **asdict(received),
            "stale": self._inbox.stale,
        }

    def step_save(self) -> float:
        """Do one round of the SAVE thread; returns the seconds for which there is nothing to do."""
        return self._delivery.step()

    def step_receive(self) -> float:
        """Do one round of the RECV thread; returns the seconds to sleep before the next."""
        return self._receiver.step()

    def _tables(self) -> dict[str, int]:
        return {**self._outbox.tables(), **self._inbox.tables()}

    def _drain(self, timeout: float) -> None:
        if self._threads:
            self._outbox.drained(timeout)
            return
        while not self.step_save():
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
