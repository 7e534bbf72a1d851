"""One request of a `ProcessStage`, on the owner's side."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from stagewire.errors import StagewireError, describe
from stagewire.spec.stage import StageRequest
from stagewire.stages.frames import Frame

_END = object()


class ProcessRun:
    """Feeds the request's chunks to the process as it asks for them, and yields what it puts out."""

    def __init__(self, number: int, request: StageRequest, say: Callable[[Frame], None]) -> None:
        self._number = number
        self._request = request
        self._send = say
        self._arrived: deque[Any] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._error: BaseException | None = None
        self._input_error: Exception | None = None
        self._feeding: asyncio.Task[None] | None = None

    async def outputs(self) -> AsyncGenerator[Any, None]:
        """Start the request in the process and yield its outputs; raises why it failed."""
        request = self._request
        fields = {"id": request.id, "prompt": _travels(request.prompt), "inputs": list(request.inputs)}
        self._say("start", {**fields, "inputs_by_stage": {k: list(v) for k, v in request.inputs_by_stage.items()}})
        while True:
            while self._arrived:
                yield self._arrived.popleft()
                self._say("room")
            if self._ended:
                break
            self._news.clear()
            await self._news.wait()
        if self._error is not None:
            raise self._input_error or self._error

    def hear(self, frame: Frame) -> None:
        """Take what the process says about this request."""
        if frame.kind == "want":
            self._feeding = asyncio.get_running_loop().create_task(self._feed(), name=f"feed {self._request.id}")
        elif frame.kind == "out":
            self._arrived.append(frame.value)
            self._news.set()
        elif frame.kind == "failed":
            cause, trace = frame.value
            error = StagewireError(cause)
            error.add_note(trace)
            self.fail(error)
        else:
            self._ended = True
            self._news.set()

    def fail(self, error: BaseException) -> None:
        """End the request with this error, after the outputs before it."""
        self._error = error
        self._ended = True
        self._news.set()

    def stop(self) -> None:
        """Tell the process that nobody wants more. Idempotent."""
        if self._feeding is not None:
            self._feeding.cancel()
        if not self._ended:
            self._say("stop")

    async def _feed(self) -> None:
        try:
            chunk = await anext(self._request.chunks, _END)
            self._say(*(("end",) if chunk is _END else ("chunk", chunk)))
        except Exception as error:  # noqa: BLE001 — the input may fail in any way, and the code is told
            self._input_error = error
            self._say("broken", describe(error))

    def _say(self, kind: str, value: Any = None) -> None:
        self._send(Frame(kind, self._number, value))


def _travels(prompt: Any) -> Any:
    """Return the prompt, unless it is a stream: its chunks go one by one."""
    return None if isinstance(prompt, AsyncIterator) or hasattr(prompt, "__aiter__") else prompt
