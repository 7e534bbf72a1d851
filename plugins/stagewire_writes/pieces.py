"""Reads files piece by piece: several on their way at once, delivered in order, refilled one by one (S3-3)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from stagewire_writes import protocol as wire
from stagewire_writes.cache import PieceCache
from stagewire_writes.errors import FileChanged

if TYPE_CHECKING:
    from stagewire_writes.controller import WriteController


class Pieces:
    """Reads of one controller. Belongs to one event loop."""

    def __init__(self, controller: WriteController) -> None:
        self._controller = controller
        self._options = controller.options.reads
        self.cache = PieceCache(controller, int(self._options.cache))
        """Pieces in the KV backend."""

    async def piece(self, export: str, path: str, index: int, file: wire.Entry) -> memoryview:
        """Return one piece of a version of a file: a view of the cached value, or what an agent reads.

        A miss is read from an agent, and cached beside the work.

        Raises:
            FileChanged: The file is another one by now.
        """
        size = int(self._options.piece)
        cached = await self.cache.get(export, path, file.version, index)
        expected = min(size, file.size - index * size)
        if cached is not None and len(cached) == expected:
            return cached
        data, _file = await self._controller.read_at(export, path, index * size, expected, file.version)
        if len(data) != expected:
            raise FileChanged(f"{path!r}: {len(data)} bytes came where {expected} were: read it anew")
        self.cache.refill(export, path, file.version, index, data)
        return data

    @asynccontextmanager
    async def stream(
        self, export: str, path: str, file: wire.Entry, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[AsyncGenerator[memoryview, None]]:
        """Read the bytes from ``start`` to ``stop`` (exclusive) of a version of a file, as an iterator in a block.

        At most ``inflight`` pieces are asked for at once; each that is delivered makes room for the next.
        """
        async with aclosing(self._stream(export, path, file, start, file.size if stop is None else stop)) as pieces:
            yield pieces

    async def _stream(
        self, export: str, path: str, file: wire.Entry, start: int, stop: int
    ) -> AsyncGenerator[memoryview, None]:
        size = int(self._options.piece)
        todo = deque(range(start // size, -(-stop // size)) if start < stop else ())
        window: deque[tuple[int, asyncio.Task[memoryview]]] = deque()

        def fill() -> None:
            while todo and len(window) < self._options.inflight:
                index = todo.popleft()
                window.append((index, asyncio.create_task(self.piece(export, path, index, file))))

        try:
            fill()
            while window:
                index, task = window[0]
                data = await task
                window.popleft()
                fill()
                yield data[max(0, start - index * size) : stop - index * size]
        finally:
            tasks = [task for _index, task in window]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
