"""What comes in for one request over its chunk edges, and how several inputs become one (OR-13)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from stagewire import ChunkMessage, StageId
from stagewire_orchestrator.edges import Join
from stagewire_orchestrator.outputs import Mark

NOTHING = 0
"""Travels where there is no chunk.

Each chunk travels in a list, so that any value is a chunk, `None` too; its mark, if it has one, follows it there.
"""


class Feed:
    """One request's chunks from one edge, as far as they have arrived.

    Attributes:
        source: The stage that they come from.
        ended: Whether all of them have arrived.
        taken: How many were taken.
        mark: The place of the last one that arrived, where its stage may be resumed.
    """

    def __init__(self, source: StageId, news: asyncio.Event, refill: Callable[[], None]) -> None:
        self.source = source
        self.ended = False
        self.taken = 0
        self.mark: Mark | None = None
        self._chunks: deque[Any] = deque()
        self._news = news
        self._refill = refill
        self._failure: str | None = None
        self._unwanted = False

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be taken, neither a chunk nor a failure."""
        return not self._chunks and self._failure is None

    @property
    def open(self) -> bool:
        """Whether there is or will be something to take."""
        return not self.ended or not self.empty

    @property
    def wants(self) -> bool:
        """Whether more may be delivered now; else it is left where it is, and its sender feels it in the end."""
        return not self._chunks

    def deliver(self, messages: Sequence[ChunkMessage]) -> None:
        """Take messages in, as the edge received them."""
        for message in messages:
            data = message["data"]
            if isinstance(data, list) and not self._unwanted:
                self._chunks.append(data[0])
            if isinstance(data, list) and len(data) > 1:
                self.mark = Mark(*data[1:])
            if message["finished"]:
                self._end(message)
        self._news.set()

    def take(self) -> Any:
        """Take the next chunk. Raises what the edge failed with, after the chunks before it."""
        if not self._chunks and self._failure is not None:
            raise EdgeFailed(self._failure)
        chunk = self._chunks.popleft()
        self.taken += 1
        if not self._chunks and not self.ended:
            self._refill()
        return chunk

    def move(self, refill: Callable[[], None]) -> None:
        """Be filled from elsewhere: the chunks that follow come from another worker of the same stage."""
        self._refill = refill

    def discard(self) -> None:
        """Drop what is there and what will come: nobody wants it, and its sender must not wait for that."""
        self._unwanted = True
        self._chunks.clear()
        if not self.ended:
            self._refill()

    def _end(self, message: ChunkMessage) -> None:
        if "error" in message:
            self._failure = message["error"]
        elif "cancelled" in message:
            return  # the request is being aborted: whoever did that ends this stage as well
        self.ended = True


class EdgeFailed(Exception):
    """An edge could not bring the rest of a request's chunks."""


class Feeds:
    """All inputs of one request in one stage, as one stream.

    Args:
        join: How they become one, where there are several.
        starved: Told whether the stage now waits for input.
    """

    def __init__(self, join: Join, starved: Callable[[bool], None]) -> None:
        self.news = asyncio.Event()
        self.feeds: list[Feed] = []
        self._join = join
        self._starved = starved

    def chunks(self) -> AsyncIterator[Any]:
        """Return the stream."""
        if len(self.feeds) == 1:
            return self._single(self.feeds[0])
        return {"all": self._merged, "any": self._first, "zip": self._zipped}[self._join]()

    def discard(self) -> None:
        """Drop everything that is not taken yet."""
        for feed in self.feeds:
            feed.discard()

    async def _single(self, feed: Feed) -> AsyncIterator[Any]:
        while await self._has(feed):
            yield feed.take()

    async def _merged(self) -> AsyncIterator[Any]:
        """Yield chunks of all inputs as they come, each input's in order, until all have ended."""
        while True:
            ready = [feed for feed in self.feeds if not feed.empty]
            for feed in ready:
                yield feed.take()
            if not any(feed.open for feed in self.feeds):
                return
            if not ready:
                await self._wait()

    async def _first(self) -> AsyncIterator[Any]:
        """Yield the chunks of the input that is first to have one, and drop the others'."""
        while not (ready := [feed for feed in self.feeds if not feed.empty]):
            if not any(feed.open for feed in self.feeds):
                return
            await self._wait()
        for feed in self.feeds:
            if feed is not ready[0]:
                feed.discard()
        async for chunk in self._single(ready[0]):
            yield chunk

    async def _zipped(self) -> AsyncIterator[Any]:
        """Yield a tuple of the first chunk of each input, then of the second, and so on."""
        while True:
            there = [await self._has(feed) for feed in self.feeds]
            if not all(there):
                self._refuse_rest(there)
                return
            yield tuple(feed.take() for feed in self.feeds)

    def _refuse_rest(self, there: Sequence[bool]) -> None:
        for feed, more in zip(self.feeds, there, strict=True):
            if more:
                ended = next(each for each, has in zip(self.feeds, there, strict=True) if not has)
                raise ValueError(
                    f"the inputs cannot be zipped: {ended.source!r} ended after {ended.taken} chunks,"
                    f" and {feed.source!r} has more"
                )

    async def _has(self, feed: Feed) -> bool:
        """Wait until the feed has something to take; ``False`` once it has ended."""
        while feed.empty:
            if feed.ended:
                return False
            await self._wait()
        return True

    async def _wait(self) -> None:
        self.news.clear()
        self._starved(True)  # noqa: FBT003 — a flag is what it takes
        try:
            await self.news.wait()
        finally:
            self._starved(False)  # noqa: FBT003 — see above
