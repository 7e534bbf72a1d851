"""Blocking stages in a process of their own, one for each replica: for code that keeps the interpreter busy."""

from __future__ import annotations

import asyncio
import itertools
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_json

from stagewire.errors import CodecError, StagewireError, describe
from stagewire.spec.stage import StageContext, StageRequest
from stagewire.stages.binding import reference
from stagewire.stages.frames import LENGTH, Frame, pack, unpack
from stagewire.stages.process_run import ProcessRun

AHEAD = 8
"""Outputs that a request in the process may be ahead of whoever takes them."""

GRACE = 5.0
"""Seconds that the process has to end by itself; then it is killed."""


class ProcessStage:
    """A stage whose code runs in another process. A process that dies fails its requests; the next starts another.

    Args:
        made_of: A plain function or a class, at the top of a module.
        options: Its options.
    """

    def __init__(self, made_of: Callable[..., Any], options: BaseModel) -> None:
        self._spec = {
            "made_of": reference(made_of),
            "model": reference(type(options)),
            "options": to_json(_revealed(options.model_dump())).decode(),
            "ahead": AHEAD,
            "path": sys.path,
        }
        self._numbers = itertools.count(1)
        self._runs: dict[int, ProcessRun] = {}
        self._process: Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def open(self, context: StageContext) -> None:
        """Start the process. Raises `StagewireError` when the stage cannot be made there."""
        self._spec |= {"stage": context.stage, "replica": context.replica, "base": str(context.base)}
        await self._running()

    async def process(self, request: StageRequest) -> AsyncIterator[Any]:
        """Yield what the code yields or returns; raises `StagewireError` with what it raised."""
        process = await self._running()
        number = next(self._numbers)
        run = self._runs[number] = ProcessRun(number, request, lambda frame: self._say(process, frame))
        try:
            async with aclosing(run.outputs()) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            del self._runs[number]
            run.stop()

    async def close(self) -> None:
        """Let the process end, and see that it does."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        finally:
            await self._reap(process)

    async def _running(self) -> Process:
        async with self._starting:
            if self._process is None or self._listener is None or self._listener.done():
                self._process = await self._start()
            return self._process

    async def _start(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "stagewire.stages.child", stdin=PIPE, stdout=PIPE
        )
        try:
            await self._greet(process)
        except BaseException:
            await self._reap(process)
            raise
        self._listener = asyncio.get_running_loop().create_task(self._listen(process), name="stage process")
        return process

    async def _greet(self, process: Process) -> None:
        self._say(process, Frame("make", 0, self._spec))
        answer = await _read(process)
        if answer is None or answer.kind != "ready":
            why = "it ended at once" if answer is None else answer.value
            raise StagewireError(f"the process of {self._spec['made_of']} cannot be used: {why}")

    async def _listen(self, process: Process) -> None:
        error = "its pipe was closed"
        try:
            while (frame := await _read(process)) is not None:
                run = self._runs.get(frame.run)
                if run is not None:
                    run.hear(frame)
        except CodecError as broken:
            error = describe(broken)
            process.kill()
        status = await process.wait()
        for run in self._runs.values():
            run.fail(StagewireError(f"the stage's process ended with status {status}: {error}"))

    async def _reap(self, process: Process) -> None:
        if process.returncode is None:
            process.kill()
        await asyncio.shield(process.wait())
        listener, self._listener = self._listener, None
        if listener is not None:
            await asyncio.wait([listener])

    def _say(self, process: Process, frame: Frame) -> None:
        if process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(pack(frame))


async def _read(process: Process) -> Frame | None:
    assert process.stdout is not None, "started with a pipe"
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
        return unpack(await process.stdout.readexactly(length))
    return None


def _revealed(value: Any) -> Any:
    """Return the options with their secrets readable: they go through a pipe, to a process of the same person."""
    if isinstance(value, SecretStr | SecretBytes):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {key: _revealed(item) for key, item in value.items()}
    return [_revealed(item) for item in value] if isinstance(value, list | tuple | set) else value
