"""A TCP proxy that injures: cuts, delays, throttles and half-opens the connections through it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
_BLOCK = 64 * 1024


class FaultProxy:
    """Listens on a free loopback port (``port``) and forwards to ``host:target``, until told to do worse.

    Runs an event loop on a thread of its own; every method may be called from any thread. The faults apply to open
    connections and to new ones.
    """

    def __init__(self, target: int, host: str = "127.0.0.1") -> None:
        self._target = (host, target)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._delay = 0.0
        self._rate: float | None = None
        self._refusing = False
        self.port = 0

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    def start(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        self.port = self._run(self._listen())
        return self

    async def _listen(self) -> int:
        self._flowing.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            self._abort(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            return
        upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, upstream_writer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, upstream_writer))
                group.create_task(self._pump(upstream_reader, writer))
        except* OSError:
            pass
        finally:
            self._abort(upstream_writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while block := await reader.read(_BLOCK):
            await self._flowing.wait()
            if self._delay:
                await asyncio.sleep(self._delay)
            if self._rate:
                await asyncio.sleep(len(block) / self._rate)
            writer.write(block)
            await writer.drain()
        raise ConnectionResetError("one side ended; the proxy ends the other")

    def _abort(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.transport.abort()

    def cut(self) -> None:
        """Reset every open connection; new ones are let through."""

        async def cut() -> None:
            for writer in list(self._writers):
                self._abort(writer)

        self._run(cut())

    def refuse(self, *, on: bool = True) -> None:
        """Close new connections at once while on."""
        self._refusing = on

    def half_open(self, *, on: bool = True) -> None:
        """Swallow everything in both directions while on; connections stay open and nobody is told."""

        async def switch() -> None:
            if on:
                self._flowing.clear()
            else:
                self._flowing.set()

        self._run(switch())

    def delay(self, seconds: float) -> None:
        """Hold each block back for so long."""
        self._delay = seconds

    def throttle(self, bytes_per_second: float | None) -> None:
        """Let so many bytes a second through each direction of each connection; ``None``: no limit."""
        self._rate = bytes_per_second

    def close(self) -> None:
        """Cut everything and stop listening."""

        async def shut() -> None:
            self._server.close()
            for task in list(self._connections):
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            with suppress(asyncio.CancelledError):
                await self._server.wait_closed()

        self._run(shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
