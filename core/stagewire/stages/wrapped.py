"""Stages made of functions, and classes whose methods may be plain ones."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from stagewire.spec.stage import StageContext, StageRequest
from stagewire.stages.blocking import BlockingCall, blocking_request, close, outputs

Process = Callable[[StageRequest], Any]


class Wrapped:
    """A stage around a process function; ``open`` and ``close`` go to an object, if there is one.

    Args:
        target: What has ``open`` and ``close``, plain or asynchronous; either may be missing.
    """

    def __init__(self, target: object | None = None) -> None:
        self._open = getattr(target, "open", None)
        self._close = getattr(target, "close", None)

    async def open(self, context: StageContext) -> None:
        """Open the object; a plain method runs in a thread."""
        await _call(self._open, context)

    async def close(self) -> None:
        """Close it, likewise."""
        await _call(self._close)


class AsyncStage(Wrapped):
    """A stage around an async generator function, or a coroutine function whose result is the one chunk."""

    def __init__(self, process: Process, target: object | None = None) -> None:
        super().__init__(target)
        self._process = process

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        """Yield what the function yields or returns."""
        result = self._process(request)
        if not isinstance(result, AsyncIterator):
            for chunk in outputs(await result):
                yield chunk
            return
        try:
            async for chunk in result:
                yield chunk
        finally:
            await aclose(result)


class InlineStage(Wrapped):
    """A stage around a plain function or generator that is quick: it runs on the event loop.

    It cannot wait for chunks there, so it is called when all of them have come.
    """

    def __init__(self, process: BlockingCall, target: object | None = None) -> None:
        super().__init__(target)
        self._process = process

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        """Yield what the function yields or returns."""
        chunks = [chunk async for chunk in request.chunks]
        result = self._process(blocking_request(request, iter(chunks)))
        try:
            for chunk in outputs(result):
                yield chunk
        finally:
            close(result)


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function is asynchronous, in either way; also beneath decorators and arguments bound to it."""
    while isinstance(function, partial):
        function = function.func
    plain = inspect.unwrap(function)
    return inspect.isasyncgenfunction(plain) or inspect.iscoroutinefunction(plain)


async def aclose(stream: AsyncIterator[Any]) -> None:
    """End an async generator that is not used up, so that its ``finally`` runs here and now."""
    close_it = getattr(stream, "aclose", None)
    if close_it is not None:
        await close_it()


async def _call(method: Callable[..., Any] | None, *args: Any) -> None:
    if method is None:
        return
    if inspect.iscoroutinefunction(method):
        await method(*args)
    else:
        await asyncio.to_thread(method, *args)
