"""The input of a run, as the prompt of its one request: counted, and ended early when the run is to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from stagewire import InputStream
from stagewire.lifecycle import StopSignal


class RunInput:
    """Yields the blocks of an input until it ends or a stop is asked for, whichever is first.

    Args:
        source: The input.
        stop: Asks for the stop; a read that waits is given up.
        on_read: Called with the bytes read so far, after each block.
    """

    def __init__(self, source: InputStream, stop: StopSignal, on_read: Callable[[int], None]) -> None:
        self._source = source
        self._stop = stop
        self._on_read = on_read
        self._read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield blocks. Raises what the input raises."""
        stopped = asyncio.ensure_future(self._stop.wait())
        blocks = aiter(self._source)
        try:
            while (block := await self._next(blocks, stopped)) is not None:
                self._read += len(block)
                self._on_read(self._read)
                yield block
        finally:
            stopped.cancel()

    async def _next(self, blocks: AsyncIterator[bytes], stopped: asyncio.Future[str]) -> bytes | None:
        if stopped.done():
            return None
        reading = asyncio.ensure_future(_read(blocks))
        try:
            both: list[asyncio.Future[Any]] = [reading, stopped]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not reading.done():
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
        return None if reading.cancelled() else reading.result()


class NoInput:
    """The prompt of a run without an input: no blocks, and a note that somebody asked for them.

    Args:
        on_asked: Called when the blocks are asked for.
    """

    def __init__(self, on_asked: Callable[[], None]) -> None:
        self._on_asked = on_asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield nothing."""
        self._on_asked()
        nothing: tuple[bytes, ...] = ()
        for block in nothing:
            yield block


async def _read(blocks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(blocks, None)
