"""Where final outputs go: one file for each stage that ``outputs`` names."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from stagewire import ConfigError, InputStream, OutputFile, Problem, StageId, StagewireError, describe
from stagewire_orchestrator.config import OutputBlock
from stagewire_orchestrator.formats import ENCODERS, Encode, format_of, guess
from stagewire_orchestrator.wav import LIMIT, WavWriter

BUFFER = 64 * 1024
"""Bytes that wait before a file is written to."""


_ELSEWHERE = "; choose another --output directory, or let this one be written to"
_REMEDIES = {
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EROFS: _ELSEWHERE,
    errno.EISDIR: "; remove the directory, or choose another file name",
    errno.ENOSPC: "; make room, or choose another --output directory",
    errno.EDQUOT: "; make room, or choose another --output directory",
}


class OutputFailed(StagewireError):
    """A file could not take what a stage put out.

    Attributes:
        stage: The stage.
    """

    def __init__(self, stage: StageId, cause: str) -> None:
        self.stage = stage
        super().__init__(cause)


class _Writer(Protocol):
    def write(self, data: bytes, /) -> object: ...


class Sink:
    """One file. `add` is cheap and stays in memory; `flush` writes, and is called on the writing thread.

    Args:
        path: The file; made by `open`, replacing what was there.
        stage: The stage that fills it.
        block: How.
        limit: The most bytes of sound of a wav file.
    """

    def __init__(self, path: Path, stage: StageId, block: OutputBlock, limit: int = LIMIT) -> None:
        self.path = path
        self.stage = stage
        self.chunks = 0
        self.bytes = 0
        self.made = False
        self._format = format_of(block.file, block.format)
        self._rate = block.rate or 0
        self._limit = limit
        self._encode: Encode | None = None if self._format is None else ENCODERS[self._format]
        self._waiting: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None
        self._writer: _Writer | None = None

    @property
    def full(self) -> bool:
        """Whether it is time to write."""
        return self._size >= BUFFER

    @property
    def dirty(self) -> bool:
        """Whether anything waits to be written."""
        return self._size > 0

    def open(self) -> None:
        """Make the file. Raises `OSError`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("wb")
        self.made = True
        self._writer = WavWriter(self._file, self._rate, self._limit) if self._format == "wav" else self._file

    def add(self, chunk: object) -> None:
        """Take a chunk. Raises `TypeError` when the format cannot say it."""
        if self._encode is None:
            self._encode = ENCODERS[guess(chunk)]
        data = self._encode(chunk)
        self._waiting.append(data)
        self._size += len(data)
        self.chunks += 1

    def flush(self) -> None:
        """Write what waits. Raises `OSError`, or `WavFull`."""
        data, self._waiting, self._size = b"".join(self._waiting), [], 0
        if data and self._writer is not None and self._file is not None:
            self._writer.write(data)
            self._file.flush()

    def finish(self) -> None:
        """Write what waits, and see that the file is whole. Raises what `flush` does, and `ValueError`."""
        self.flush()
        if isinstance(self._writer, WavWriter):
            self._writer.finish()

    def close(self) -> None:
        """Write what waits, and close the file even if that fails. Idempotent. Raises what `flush` does."""
        if self._file is None:
            return
        try:
            self.flush()
        finally:
            file, self._file = self._file, None
            try:
                file.close()  # writes too, when an earlier write failed
            finally:
                self.bytes = self._size_on_disk()

    def _size_on_disk(self) -> int:
        with suppress(OSError):
            return self.path.stat().st_size
        return 0

    def report(self) -> OutputFile:
        """Return what a run report says of it; after `close`."""
        return OutputFile(self.path, str(self.stage), self.chunks, self.bytes)


class Sinks:
    """All files of one run, written on one thread of their own, so that a slow disk holds up no stage.

    Args:
        directory: Where they lie.
        outputs: The files, by stage.
        limit: The most bytes of sound of a wav file.

    Attributes:
        failures: The first failure of each file that had one.
    """

    def __init__(self, directory: Path, outputs: Mapping[str, OutputBlock], limit: int = LIMIT) -> None:
        self._sinks: dict[StageId, Sink] = {
            stage: Sink(directory / block.file, stage, block, limit) for stage, block in outputs.items()
        }
        self.failures: list[OutputFailed] = []
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="outputs")

    def spare(self, source: InputStream) -> None:
        """See that no file is the input. Raises `ConfigError` for each that is; no file was touched by then."""
        message = (
            "the output {} is the input itself, and would replace it: choose another --output directory,"
            " or another file name"
        )
        problems = [
            Problem(message.format(sink.path), ("outputs", str(stage), "file"))
            for stage, sink in self._sinks.items()
            if source.is_same_file(sink.path)
        ]
        if problems:
            raise ConfigError(problems)

    async def open(self) -> None:
        """Make the files. Raises `OutputFailed`."""
        for sink in self._sinks.values():
            await self._do(sink, sink.open)

    async def write(self, stage: StageId | None, chunk: object) -> None:
        """Take a chunk, and write when enough has come together. Raises `OutputFailed`."""
        sink = None if stage is None else self._sinks.get(stage)
        if sink is None:
            return
        try:
            sink.add(chunk)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._failed(sink, error) from error
        if sink.full:
            await self._do(sink, sink.flush)

    async def flush(self) -> None:
        """Write what waits. Raises `OutputFailed`."""
        for sink in self._sinks.values():
            if sink.dirty:
                await self._do(sink, sink.flush)

    async def finish(self) -> None:
        """Write what waits, and see that the files are whole. Raises `OutputFailed`."""
        for sink in self._sinks.values():
            await self._do(sink, sink.finish)

    async def close(self) -> list[OutputFile]:
        """Write what waits, close every file, and say what those that were made hold. Idempotent.

        Raises nothing: what failed is in `failures`.
        """
        if not self._closed:
            self._closed = True
            for sink in self._sinks.values():
                with suppress(OutputFailed):
                    await self._do(sink, sink.close)
            self._thread.shutdown(wait=False)
        return [sink.report() for sink in self._sinks.values() if sink.made]

    async def _do(self, sink: Sink, act: Callable[[], None]) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, act)
        except (OSError, ValueError, StagewireError) as error:
            raise self._failed(sink, error) from error

    def _failed(self, sink: Sink, error: Exception) -> OutputFailed:
        failure = OutputFailed(sink.stage, f"output {sink.path}: {_reason(error)}")
        if all(each.stage != sink.stage for each in self.failures):
            self.failures.append(failure)
        return failure


def _reason(error: Exception) -> str:
    if isinstance(error, StagewireError | TypeError):
        return str(error)
    if not isinstance(error, OSError) or error.strerror is None:
        return describe(error)
    remedy = _REMEDIES.get(error.errno or 0, "")
    return f"it cannot be written: {error.strerror}{remedy}"
