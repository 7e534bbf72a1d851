"""Where log lines go: whole lines, from any thread, and no fault of the target ever reaches the work."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Protocol, TextIO

from stagewire.errors import ConfigError, Problem


class Target(Protocol):
    """Takes one line, its newline included, or raises."""

    @property
    def terminal(self) -> bool: ...

    def write(self, line: str) -> None: ...

    def close(self) -> None: ...


class StreamTarget:
    """A text stream that belongs to somebody else and is not closed here."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def terminal(self) -> bool:
        try:
            return self._stream.isatty()
        except ValueError:  # closed
            return False

    def write(self, line: str) -> None:
        self._stream.write(line)
        self._stream.flush()

    def close(self) -> None:
        """The stream's owner closes it."""


class FileTarget:
    """A file that is appended to, one write per line, so that several processes may share it.

    Raises:
        ConfigError: The file cannot be opened.
    """

    terminal = False

    def __init__(self, path: Path) -> None:
        self._fd = _open(path)
        self._close = weakref.finalize(self, os.close, self._fd)
        self._torn = False

    def write(self, line: str) -> None:
        if not self._close.alive:
            raise ValueError("the log file was closed")
        rest = memoryview((("\n" if self._torn else "") + line).encode("utf-8", "backslashreplace"))
        while rest:
            written = os.write(self._fd, rest)
            rest = rest[written:]
            self._torn = bool(rest)  # should the next write fail, the line after it must not continue this half

    def close(self) -> None:
        self._close()


class LogSink:
    """Writes lines to one target. Thread-safe; never raises: a line that cannot be written is counted and dropped.

    Several loggers may share one sink. Its methods are named after log levels, for structlog calls them by those.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._lock = threading.RLock()  # re-entrant, for a finalizer may log while a line is being written
        self._dropped = 0

    @property
    def terminal(self) -> bool:
        """Whether a person reads it as it comes."""
        return self._target.terminal

    @property
    def dropped(self) -> int:
        """How many lines were lost because the target was closed, full or broken."""
        return self._dropped

    def write(self, line: str) -> None:
        """Write one line; a newline is added."""
        with self._lock:
            try:
                self._target.write(line + "\n")
            except Exception:  # noqa: BLE001 — logging must never break the work, whatever the stream is
                self._dropped += 1

    debug = info = warning = error = critical = write

    def close(self) -> None:
        """Let go of the file, if it is one. Lines that come later are dropped and counted. Idempotent."""
        with self._lock:
            self._target.close()


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:
        message = f"cannot log to {path}: the directory {path.parent} does not exist; create it"
    except OSError as error:
        message = f"cannot log to {path}: {error.strerror}; name a file that may be appended to"
    raise ConfigError([Problem(message, path=("logging", "file"))])
