"""Follows files as they grow, through rotation by rename and by copy-truncate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from stagewire_logs.damage import OVERSIZED

READ = 256 * 1024


class Follower:
    """Reads whole lines that are added to a file. Not thread-safe.

    The file may be missing at first, be renamed (what was still written to it is read before the new one), be truncated
    in place, or be replaced. Where a file is truncated and outgrows its old size between two looks, what the new
    content holds up to the old size is not seen: rotation by rename has no such gap.

    Args:
        path: The file.
        last: How many lines that are there already count; ``None``: all.
    """

    def __init__(self, path: Path, last: int | None = 10) -> None:
        self.path = path
        self._fd = self._opened()
        self._held = b""
        self._at = 0
        if self._fd is not None and last is not None:
            self._at = _start_of_last(self._fd, last)

    def read(self) -> Iterator[bytes]:
        """Yield the whole lines that were added since, in blocks. Returns when there are no more for now."""
        if self._fd is None:
            self._fd = self._opened()
        yield from self._new_lines()
        if self._replaced():
            yield from self._new_lines()  # written between the last read and the rename
            if self._held:
                yield self._held + b"\n"
            self.close()
            self._fd = self._opened()
            yield from self._new_lines()

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._held, self._at = None, b"", 0

    def _opened(self) -> int | None:
        with suppress(FileNotFoundError):
            return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return None

    def _replaced(self) -> bool:
        """Whether the path names another file now; a path that names none may be between two."""
        if self._fd is None:
            return False
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(self._fd)
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)

    def _new_lines(self) -> Iterator[bytes]:
        if self._fd is None:
            return
        if os.fstat(self._fd).st_size < self._at:
            self._at, self._held = 0, b""
        while data := os.pread(self._fd, READ, self._at):
            self._at += len(data)
            cut = data.rfind(b"\n") + 1
            if cut:
                yield self._held + data[:cut]
                self._held = data[cut:]
            elif len(self._held) < OVERSIZED:
                self._held += data


def _start_of_last(fd: int, lines: int) -> int:
    """Return where the last lines begin."""
    end = at = os.fstat(fd).st_size
    wanted = lines + 1
    while at and wanted and end - at < OVERSIZED:
        begin = max(0, at - READ)
        data = os.pread(fd, at - begin, begin)
        found = len(data)
        if at == end and not data.endswith(b"\n"):
            wanted -= 1  # the unfinished line is not one of them
        while wanted and (found := data.rfind(b"\n", 0, found)) >= 0:
            wanted -= 1
            if not wanted:
                return begin + found + 1
        at = begin
    return at
