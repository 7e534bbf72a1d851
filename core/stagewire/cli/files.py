"""The input of a run: a file, a pipe or a terminal, read block by block as it is asked for."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import stat
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import click

from stagewire.errors import StagewireError

BLOCK = 4096
"""Bytes of one read at most: small, so that work begins long before the input ends."""


class FileInput:
    """Reads a file descriptor off the event loop's thread. May be iterated once; cancelling ends a read that waits.

    Args:
        fd: Open for reading; closed by `close`.
        name: What messages call it.
        block: Bytes of one read at most.
    """

    def __init__(self, fd: int, name: str, block: int = BLOCK) -> None:
        self._fd = fd
        self._name = name
        self._block = block
        self._size = _size_of(fd)
        self._started = False
        self._stop_reading, self._stopped = os.pipe()
        self._reader = ThreadPoolExecutor(
            1, thread_name_prefix="input"
        )  # the default one may be full of blocked stages

    @property
    def name(self) -> str:
        """The path, or ``<stdin>``."""
        return self._name

    @property
    def size(self) -> int | None:
        """How many bytes are left to read, where the system knows."""
        return self._size

    def is_same_file(self, path: Path) -> bool:
        """Return whether it reads the regular file at ``path``, which may be a link to it."""
        status = os.fstat(self._fd)
        try:
            return stat.S_ISREG(status.st_mode) and os.path.samestat(status, path.stat())
        except OSError:
            return False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield blocks until the end.

        Raises:
            StagewireError: It cannot be read on.
            RuntimeError: It was iterated before.
        """
        if self._started:
            raise RuntimeError(f"{self._name} was read already")
        self._started = True
        while block := await self._next():
            yield block

    def close(self) -> None:
        """End a read that waits, and let go of the descriptor and the thread. Once."""
        self._end_read()
        self._reader.shutdown()
        for fd in (self._fd, self._stop_reading, self._stopped):
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _next(self) -> bytes:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._reader, self._read)
        except asyncio.CancelledError:
            self._end_read()
            raise
        except OSError as error:
            raise StagewireError(f"{self._name} cannot be read on: {error.strerror}") from error

    def _end_read(self) -> None:
        os.write(self._stopped, b"\0")  # the thread would else wait for a pipe that may stay silent for ever

    def _read(self) -> bytes:
        while self._wait():
            try:
                return os.read(self._fd, self._block)
            except BlockingIOError:  # another process that shares it set O_NONBLOCK and was faster
                continue
        return b""

    def _wait(self) -> bool:
        """Wait until there is something to read, which an end is too; ``False`` when told to stop."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._stop_reading, select.POLLIN)
        return self._stop_reading not in [fd for fd, _event in poll.poll()]


def open_input(path: str, block: int = BLOCK) -> FileInput:
    """Open a path, or standard input for ``-``.

    Raises:
        click.BadParameter: It is missing, a directory, or may not be read.
    """
    name = "<stdin>" if path == "-" else path
    try:
        fd = _standard_input() if path == "-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise click.BadParameter(f"{name}: {_reason(error)}", param_hint="--input") from error
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise click.BadParameter(f"{name} is a directory; name a file, or - for standard input", param_hint="--input")
    return FileInput(fd, name, block)


def _standard_input() -> int:
    if sys.stdin is None:  # closed at the start; by now descriptor 0 may be anything
        raise OSError(errno.EBADF, "it is closed")
    return os.dup(0)


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "you may not read it; change its permissions"
    return str(error.strerror)


def _size_of(fd: int) -> int | None:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return None
    return max(0, status.st_size - os.lseek(fd, 0, os.SEEK_CUR))
