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
from stagewire_orchestrator.outputs import Mark

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
        scope: See `InEnd`.
        confirms: Whether somebody asks `sent`.
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
        scope: str = "",
        confirms: bool = False,
    ) -> None:
        super().__init__(
            edge, transport.chunks(ChunkLink(scope + edge.name, edge.source, edge.target, replica, "send"))
        )
        self._on_failed = on_failed
        self._room: dict[str, asyncio.Event] = {}
        self._begun: set[str] = set()
        self._names: dict[str, str] = {}
        self._confirms = confirms
        self._ending: dict[str, asyncio.Event] = {}
        self._adapter = ChunkAdapter(
            self._face,
            edge.source,
            options=_options(limits),
            edge=edge.name,
            on_ready=lambda: self._soon(self._look_for_failures),
            on_room=lambda name: self._soon(self._has_room, name),
            on_sent=(lambda name: self._soon(self._was_sent, name)) if confirms else None,
            log=log,
        )

    def rename(self, wire: str, edge_wire: str) -> None:
        """Send a request under another id from its next chunk on, which is the first under that id."""
        self._names[wire] = edge_wire

    async def send(self, wire: str, chunk: Any, mark: Mark | None = None) -> None:
        """Send a chunk, with its mark; waits while the edge has no room for this request."""
        name = self._names.get(wire, wire)
        while not self._sent(name, [chunk] if mark is None else [chunk, *mark]):
            await self._room[name].wait()

    def finish(self, wire: str) -> None:
        """Say that all was sent."""
        self._expect(wire)
        self._finish(self._names.pop(wire, wire))

    async def sent(self, wire: str) -> None:
        """Wait until all of a request that is finished was put; from then on nothing of it depends on this process."""
        ending = self._ending.get(wire)
        if ending is not None:
            await ending.wait()

    def cancel(self, wire: str) -> None:
        """Drop what waits to be sent, and tell the receiver, also when nothing was sent so far."""
        self._cancel(self._names.pop(wire, wire), ending=self._ending.pop(wire, None) is not None)

    def _sent(self, name: str, parcel: Any) -> bool:
        """Send unless there is no room; ``_room[name]`` is then set when there may be."""
        self._begun.add(name)
        room = self._room[name] = self._room.get(name) or asyncio.Event()
        room.clear()
        try:
            self._adapter.save_async(name, parcel, is_final=False)
        except TransportFull:
            return False
        return True

    def _finish(self, name: str) -> None:
        self._forget(name)
        self._adapter.save_async(name, None, is_final=True)

    def _cancel(self, name: str, *, ending: bool = False) -> None:
        with suppress(TransportFull, Closed):
            if name not in self._begun and not ending:
                self._adapter.save_async(name, NOTHING, is_final=False)  # only what is in use can be cancelled
        self._forget(name)
        self._adapter.cancel_sender(name)

    def _forget(self, name: str) -> None:
        self._room.pop(name, None)
        self._begun.discard(name)

    def _expect(self, wire: str) -> None:
        if self._confirms:
            self._ending[wire] = asyncio.Event()

    def _was_sent(self, name: str) -> None:
        ending = self._ending.pop(wire_of(name), None)
        if ending is not None:
            ending.set()
        self._face.cleanup(name)  # no id is used twice, so nothing need be remembered of it

    def _has_room(self, name: str) -> None:
        room = self._room.get(name)
        if room is not None:
            room.set()

    def _look_for_failures(self) -> None:
        for name, error in self._adapter.poll_failed().items():
            self._on_failed(wire_of(name), error)


class InEnd(_End):
    """Receives one stage replica's chunks from every replica of another stage.

    Args:
        edge: The edge.
        replica: The number of this replica.
        transport: What carries it.
        limits: The edge's bounds.
        log: Where events go.
        scope: What the transport calls the edge by before its name; another where the same broker carries others.
    """

    def __init__(
        self,
        edge: Edge,
        replica: int,
        transport: Transport,
        *,
        limits: EdgeLimits,
        log: FilteringBoundLogger,
        scope: str = "",
    ) -> None:
        super().__init__(
            edge, transport.chunks(ChunkLink(scope + edge.name, edge.source, edge.target, replica, "receive"))
        )
        self._stall = math.inf if limits.stall is None else limits.stall
        self._feeds: dict[str, Feed] = {}
        self._full: set[str] = set()
        self._gone: dict[str, asyncio.Event] = {}
        self._cut: dict[str, Feed] = {}
        self._names: dict[str, str] = {}
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

    def receive(self, wire: str, news: asyncio.Event, edge_wire: str | None = None) -> Feed:
        """Begin to receive a request, under another id if one is given; what has arrived already is not lost."""
        feed = Feed(self.edge.source, news, lambda: None)
        self._listen(wire, feed, edge_wire or wire)
        return feed

    def move(self, wire: str, edge_wire: str) -> Feed | None:
        """Take the rest of a request under another id; nothing that came under the one before appears any more.

        Returns its feed, with the mark of the last chunk it has; ``None`` when nothing of it is received any more.
        """
        name = self._names.get(wire, wire)
        feed = self._feeds.get(name) or self._cut.pop(name, None)
        if feed is not None:
            self._drop(name)
            self._adapter.cleanup_receiver(name)
            self._listen(wire, feed, edge_wire)
        return feed

    async def forget(self, wire: str) -> None:
        """Receive nothing of a request any more; its feed was discarded.

        Waits a little for its terminal, so that the transport is empty afterwards.
        """
        await self._leave(self._names.pop(wire, wire))

    async def drain(self, name: str) -> None:
        """Drop what is left of a request under an id that nobody here asks for any more."""
        feed = Feed(self.edge.source, asyncio.Event(), lambda: None)
        feed.discard()
        self._listen(name, feed, name)
        await self._leave(name)

    async def _leave(self, name: str) -> None:
        self._cut.pop(name, None)
        if name not in self._feeds:
            return
        gone = self._gone[name] = asyncio.Event()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER):
                    await gone.wait()
        finally:
            del self._gone[name]
            self._drop(name)
            self._adapter.cleanup_receiver(name)

    async def close(self) -> None:
        """Stop the adapter's threads and close its face."""
        if self._timer is not None:
            self._timer.cancel()
        await super().close()

    def _listen(self, wire: str, feed: Feed, name: str) -> None:
        feed.move(partial(self._refill, name))
        self._feeds[name] = feed
        if name != wire:
            self._names[wire] = name
        self._adapter.load_async(name, stall_timeout=self._stall)
        if self._timer is None:
            self._timer = self._loop.call_later(KEEP_ALIVE, self._keep_alive)

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
            if "cancelled" in messages[-1] and wire not in self._gone:
                self._cut[wire] = feed  # it is forgotten soon, or goes on under another id
            elif self._names.get(wire_of(wire)) == wire:
                del self._names[wire_of(wire)]
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


def again(wire: str, number: int) -> str:
    """Return the id on a chunk edge of a request that goes on there for the so-and-so-many-th time."""
    return f"{wire}{_AGAIN}{number}"


def wire_of(name: str) -> str:
    """Return the request's id of an id on a chunk edge."""
    return name.partition(_AGAIN)[0]


_AGAIN = "\x1fagain"
"""No id has it, for it holds a control character."""


def _options(limits: EdgeLimits) -> ChunkOptions:
    return ChunkOptions(
        request_chunks=limits.window,
        request_bytes=limits.window_bytes,
        window_chunks=limits.window,
        window_bytes=limits.window_bytes,
        room_timeout=math.inf,  # a slow reader is no fault; the request's clocks say what is too slow
        cancel_linger=0.0,
    )
