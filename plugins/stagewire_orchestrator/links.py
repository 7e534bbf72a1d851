"""The two ends of a chunk edge, from the event loop's side; `ChunkAdapter` does the work on its own threads (OR-14)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from stagewire import (
    ChunkKey,
    ChunkLink,
    ChunkMessage,
    ChunkTransport,
    Closed,
    Transport,
    TransportError,
    TransportFull,
)
from stagewire_chunks import ChunkAdapter, ChunkOptions
from stagewire_orchestrator.edges import Edge
from stagewire_orchestrator.feeds import NOTHING, Feed
from stagewire_orchestrator.options import EdgeLimits

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

LINGER = 1.0
"""Seconds that an aborted request's terminal has to come through an edge before the receiving end forgets it."""

KEEP_ALIVE = 10.0
"""Seconds after which the transport is told again that a request's chunks are still wanted."""

_NEVER = 2**53
"""A chunk that there never is. Asking for it takes nothing and shows the transport that its reader is alive."""

OnFailed = Callable[[str, Exception], None]
"""Takes a request's wire id and why an edge cannot carry on with it; called on the event loop."""


class _End:
    """What both ends have in common: an adapter on one face of a link, and the way back to the event loop."""

    def __init__(self, edge: Edge, face: ChunkTransport) -> None:
        self.edge = edge
        self._face = face
        self._loop = asyncio.get_running_loop()
        self._adapter: ChunkAdapter

    def _soon(self, method: Callable[..., None], *args: Any) -> None:
        """Have the loop call a method; from any thread. A loop that has ended needs no hints any more."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(method, *args)

    async def close(self) -> None:
        """Stop the adapter's threads and close its face."""
        await asyncio.to_thread(self._adapter.stop)
        self._face.close()

    def stats(self) -> dict[str, float]:
        """Return the adapter's tables and counts."""
        return dict(self._adapter.stats())


class OutEnd(_End):
    """Sends one stage replica's chunks to one replica of another stage.

    Args:
        edge: The edge.
        replica: The number of the replica that receives.
        transport: What carries it.
        limits: The edge's bounds.
        on_failed: Takes what cannot be sent.
        log: Where events go.
    """

    def __init__(
        self,
        edge: Edge,
        replica: int,
        transport: Transport,
        *,
        limits: EdgeLimits,
        on_failed: OnFailed,
        log: FilteringBoundLogger,
    ) -> None:
        super().__init__(edge, transport.chunks(ChunkLink(edge.name, edge.source, edge.target, replica, "send")))
        self._on_failed = on_failed
        self._room: dict[str, asyncio.Event] = {}
        self._begun: set[str] = set()
        self._adapter = ChunkAdapter(
            self._face,
            edge.source,
            options=_options(limits),
            edge=edge.name,
            on_ready=lambda: self._soon(self._look_for_failures),
            on_room=lambda wire: self._soon(self._has_room, wire),
            log=log,
        )

    async def send(self, wire: str, chunk: Any) -> None:
        """Send a chunk; waits while the edge has no room for this request."""
        self._begun.add(wire)
        while True:
            room = self._room[wire] = self._room.get(wire) or asyncio.Event()
            room.clear()
            try:
                self._adapter.save_async(wire, [chunk], is_final=False)
            except TransportFull:
                await room.wait()
            else:
                return

    def finish(self, wire: str) -> None:
        """Say that all was sent."""
        self._forget(wire)
        self._adapter.save_async(wire, None, is_final=True)

    def cancel(self, wire: str) -> None:
        """Drop what waits to be sent, and tell the receiver, also when nothing was sent so far."""
        with suppress(TransportFull, Closed):
            if wire not in self._begun:
                self._adapter.save_async(wire, NOTHING, is_final=False)  # only what is in use can be cancelled
        self._forget(wire)
        self._adapter.cancel_sender(wire)

    def _forget(self, wire: str) -> None:
        self._room.pop(wire, None)
        self._begun.discard(wire)

    def _has_room(self, wire: str) -> None:
        room = self._room.get(wire)
        if room is not None:
            room.set()

    def _look_for_failures(self) -> None:
        for wire, error in self._adapter.poll_failed().items():
            self._on_failed(wire, error)


class InEnd(_End):
    """Receives one stage replica's chunks from every replica of another stage.

    Args:
        edge: The edge.
        replica: The number of this replica.
        transport: What carries it.
        limits: The edge's bounds.
        log: Where events go.
    """

    def __init__(
        self, edge: Edge, replica: int, transport: Transport, *, limits: EdgeLimits, log: FilteringBoundLogger
    ) -> None:
        super().__init__(edge, transport.chunks(ChunkLink(edge.name, edge.source, edge.target, replica, "receive")))
        self._stall = math.inf if limits.stall is None else limits.stall
        self._feeds: dict[str, Feed] = {}
        self._full: set[str] = set()
        self._gone: dict[str, asyncio.Event] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._adapter = ChunkAdapter(
            self._face,
            edge.target,
            edge.source,
            options=_options(limits),
            edge=edge.name,
            on_ready=lambda: self._soon(self._poll),
            log=log,
        )

    def receive(self, wire: str, news: asyncio.Event) -> Feed:
        """Begin to receive a request; what has arrived already is not lost."""
        feed = self._feeds[wire] = Feed(self.edge.source, news, partial(self._refill, wire))
        self._adapter.load_async(wire, stall_timeout=self._stall)
        if self._timer is None:
            self._timer = self._loop.call_later(KEEP_ALIVE, self._keep_alive)
        return feed

    async def forget(self, wire: str) -> None:
        """Receive nothing of a request any more; its feed was discarded.

        Waits a little for its terminal, so that the transport is empty afterwards.
        """
        if wire not in self._feeds:
            return
        gone = self._gone[wire] = asyncio.Event()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    await gone.wait()
        finally:
            del self._gone[wire]
            self._drop(wire)
            self._adapter.cleanup_receiver(wire)

    async def close(self) -> None:
        """Stop the adapter's threads and close its face."""
        if self._timer is not None:
            self._timer.cancel()
        await super().close()

    def _keep_alive(self) -> None:
        """While a stage is slow its window is full, and the adapter gets nothing: that must not look like its end."""
        self._timer = self._loop.call_later(KEEP_ALIVE, self._keep_alive) if self._feeds else None
        for wire in self._feeds:
            with suppress(TransportError):  # the adapter meets the same fault, and reports it
                self._face.get(ChunkKey(wire, self.edge.source, _NEVER))

    def _poll(self) -> None:
        for wire, messages in self._adapter.poll_ready(leave=self._full).items():
            feed = self._feeds.get(wire)
            if feed is not None:
                self._deliver(wire, feed, messages)

    def _deliver(self, wire: str, feed: Feed, messages: Sequence[ChunkMessage]) -> None:
        feed.deliver(messages)
        if messages[-1]["finished"]:
            self._drop(wire)
            if wire in self._gone:
                self._gone[wire].set()
        elif not feed.wants:
            self._full.add(wire)

    def _refill(self, wire: str) -> None:
        """The stage has used up what it had of a request."""
        self._full.discard(wire)
        self._poll()

    def _drop(self, wire: str) -> None:
        self._feeds.pop(wire, None)
        self._full.discard(wire)


def _options(limits: EdgeLimits) -> ChunkOptions:
    return ChunkOptions(
        request_chunks=limits.window,
        request_bytes=limits.window_bytes,
        window_chunks=limits.window,
        window_bytes=limits.window_bytes,
        room_timeout=math.inf,  # a slow reader is no fault; the request's clocks say what is too slow
        cancel_linger=0.0,
    )
