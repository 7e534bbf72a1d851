"""Blocking stages on threads: one for each request, because a stage that waits for chunks must not keep others waiting.

A pool would deadlock: its threads could all wait for chunks of a stage that finds no thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from contextlib import aclosing, suppress
from typing import Any

from stagewire.errors import StillHeld
from stagewire.spec.stage import StageRequest
from stagewire.stages.blocking import BlockingCall, StageStopped, blocking_request, close, outputs
from stagewire.stages.wrapped import Wrapped

AHEAD = 8
"""Outputs that a thread may be ahead of whoever takes them."""

GRACE = 5.0
"""Seconds that threads have to end when the stage is closed."""

_END = object()


class ThreadStage(Wrapped):
    """A stage around blocking code, each request on a thread of its own. Cancelling leaves at the code's next chunk."""

    def __init__(self, process: BlockingCall, target: object | None = None) -> None:
        super().__init__(target)
        self._process = process
        self._live: set[ThreadRun] = set()

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        """Yield what the code yields or returns."""
        run = ThreadRun(self._process, request, self._live.discard)
        self._live.add(run)
        try:
            async with aclosing(run.outputs()) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            run.stop()

    async def close(self) -> None:
        """Wait for threads that have not ended, then close. Raises `StillHeld` when one does not end in time."""
        for run in self._live:
            run.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                for run in list(self._live):
                    await run.ended()
        if self._live:
            raise StillHeld("a blocking stage", [f"the thread of request {run.name!r}" for run in self._live])
        await super().close()


class ThreadRun:
    """One request on its thread. The thread is a daemon: code that never returns does not keep the process alive."""

    def __init__(self, call: BlockingCall, request: StageRequest, on_ended: Callable[[ThreadRun], None]) -> None:
        self.name = request.id
        self._call = call
        self._request = request
        self._on_ended = on_ended
        self._loop = asyncio.get_running_loop()
        self._arrived: deque[Any] = deque()
        self._news = asyncio.Event()
        self._done = asyncio.Event()
        self._error: BaseException | None = None
        self._room = threading.Semaphore(AHEAD)
        self._lock = threading.Lock()
        self._stopped = False
        self._asking: Future[Any] | None = None

    async def outputs(self) -> AsyncGenerator[Any, None]:
        """Start the thread and yield what it puts out; raises what it raises."""
        threading.Thread(target=self._main, name=f"stage-{self.name}", daemon=True).start()
        while True:
            while self._arrived:
                self._room.release()
                yield self._arrived.popleft()
            if self._done.is_set():
                break
            self._news.clear()
            await self._news.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Let the code end at its next chunk, in or out. Idempotent; from the loop."""
        with self._lock:
            self._stopped = True
            asking, self._asking = self._asking, None
        self._room.release()
        if asking is not None:
            asking.cancel()

    async def ended(self) -> None:
        """Wait for the end of the thread."""
        await self._done.wait()

    def _main(self) -> None:
        error: BaseException | None = None
        try:
            self._work()
        except StageStopped:
            pass
        except BaseException as failure:  # noqa: BLE001 — it belongs to the request, and is raised there
            error = failure
        self._soon(self._end, error)

    def _work(self) -> None:
        result = self._call(blocking_request(self._request, self._chunks()))
        try:
            for chunk in outputs(result):
                self._put(chunk)
        finally:
            close(result)

    def _chunks(self) -> Iterator[Any]:
        while (chunk := self._ask()) is not _END:
            yield chunk

    def _ask(self) -> Any:
        with self._lock:
            if self._stopped:
                raise StageStopped
            self._asking = asking = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        try:
            return asking.result()
        except FutureCancelled:
            raise StageStopped from None

    async def _next(self) -> Any:
        return await anext(self._request.chunks, _END)

    def _put(self, chunk: Any) -> None:
        self._room.acquire()
        if self._stopped:
            raise StageStopped
        self._soon(self._arrive, chunk)

    def _arrive(self, chunk: Any) -> None:
        self._arrived.append(chunk)
        self._news.set()

    def _end(self, error: BaseException | None) -> None:
        self._error = error
        self._done.set()
        self._news.set()
        self._on_ended(self)

    def _soon(self, method: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            self._loop.call_soon_threadsafe(method, value)
