"""The other end of a `ProcessStage`: ``python -m stagewire.stages.child`` runs blocking code, a thread a request."""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from stagewire.errors import describe
from stagewire.logs import fallback_logger
from stagewire.spec.stage import StageContext
from stagewire.stages.binding import bind, resolve
from stagewire.stages.blocking import BlockingCall, BlockingRequest, StageStopped, close, outputs
from stagewire.stages.frames import LENGTH, Frame, pack, unpack

Say = Callable[[Frame], None]


class Run:
    """One request in this process."""

    def __init__(self, number: int, call: BlockingCall, fields: dict[str, Any], say: Say, ahead: int) -> None:
        self._number = number
        self._call = call
        self._fields = fields
        self._say = say
        self._answers: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._room = threading.Semaphore(ahead)
        self._stopped = False

    def hear(self, frame: Frame) -> None:
        """Take what the owner says to this request."""
        if frame.kind == "room":
            self._room.release()
            return
        self._stopped |= frame.kind == "stop"
        self._answers.put(frame)
        if frame.kind == "stop":
            self._room.release()

    def main(self) -> None:
        """Run the code; the thread's whole life."""
        try:
            result = self._call(BlockingRequest(chunks=self._chunks(), **self._fields))
            try:
                for chunk in outputs(result):
                    self._put(chunk)
            finally:
                close(result)
        except StageStopped:
            self._tell("done")
        except BaseException as error:  # noqa: BLE001 — it belongs to the request, and is told to the owner
            self._tell("failed", [describe(error), "".join(traceback.format_exception(error))])
        else:
            self._tell("done")

    def _chunks(self) -> Iterator[Any]:
        while True:
            self._tell("want")
            answer = self._answers.get()
            if answer.kind == "end":
                return
            if answer.kind == "broken":
                raise RuntimeError(f"the input failed: {answer.value}")
            if answer.kind == "stop":
                raise StageStopped
            yield answer.value

    def _put(self, chunk: Any) -> None:
        self._room.acquire()
        if self._stopped:
            raise StageStopped
        self._tell("out", chunk)

    def _tell(self, kind: str, value: Any = None) -> None:
        self._say(Frame(kind, self._number, value))


class Child:
    """Reads frames until the pipe ends; the owner's end is this process's end too."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()
        self._runs: dict[int, Run] = {}
        self._process: BlockingCall
        self._ahead = 1
        self._target: object | None = None

    def main(self) -> None:
        """Make what is to be run, then serve requests."""
        made = self._read()
        if made is None or not self._make(made.value):
            return
        try:
            while (frame := self._read()) is not None:
                if frame.kind == "start":
                    self._start(frame)
                elif (run := self._runs.get(frame.run)) is not None:
                    run.hear(frame)
        finally:
            _call(self._target, "close")

    def _make(self, spec: dict[str, Any]) -> bool:
        sys.path[:] = spec["path"]
        try:
            self._process, self._target = bind(resolve(spec["made_of"]), _options(spec))
            self._ahead = spec["ahead"]
            _call(self._target, "open", _context(spec))
        except BaseException as error:  # noqa: BLE001 — the owner is told, and raises it where the stage is opened
            self._say(Frame("unready", 0, describe(error)))
            return False
        self._say(Frame("ready"))
        return True

    def _start(self, frame: Frame) -> None:
        run = Run(frame.run, self._process, frame.value, self._say, self._ahead)
        self._runs[frame.run] = run
        threading.Thread(target=self._run, args=(frame.run, run), daemon=True).start()

    def _run(self, number: int, run: Run) -> None:
        run.main()
        self._runs.pop(number, None)

    def _read(self) -> Frame | None:
        head = self._source.read(LENGTH.size)
        return unpack(self._source.read(*LENGTH.unpack(head))) if len(head) == LENGTH.size else None

    def _say(self, frame: Frame) -> None:
        data = pack(frame)
        with self._lock:
            self._sink.write(data)
            self._sink.flush()


def _options(spec: dict[str, Any]) -> Any:
    model: Any = resolve(spec["model"])
    return model.model_validate_json(spec["options"])


def _context(spec: dict[str, Any]) -> StageContext:
    return StageContext(spec["stage"], spec["replica"], Path(spec["base"]), fallback_logger())


def _call(target: object | None, name: str, *args: Any) -> None:
    method = getattr(target, name, None)
    result = method(*args) if method is not None else None
    if inspect.iscoroutine(result):
        asyncio.run(result)


def main() -> None:
    """Serve on standard input and output; what the code prints goes to standard error."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Child(sys.stdin.buffer, sink).main()


if __name__ == "__main__":
    main()
