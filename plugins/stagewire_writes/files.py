"""Files being written: a session's, and whole small ones (WS-13, WS-17). Everything here blocks; run it in threads."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from stagewire_writes.errors import from_os
from stagewire_writes.options import ExportOptions
from stagewire_writes.paths import Parts, Tree
from stagewire_writes.protocol import Written
from stagewire_writes.staging import Hold, Staging


def write_all(fd: int, data: memoryview, offset: int) -> None:
    """Write all bytes at an offset."""
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], offset + done)


def written(status: os.stat_result) -> Written:
    """Return how a file is."""
    return Written(status.st_size, status.st_mtime, version_of(status))


def version_of(status: os.stat_result) -> str:
    """Return what tells a file from every other that is or was at its path."""
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


class SessionFile:
    """The file of one session, from its opening to `commit` or `discard`. One thread at a time.

    ``atomic``: the file beside the tree is what is written, and commit renames it. ``in_place``: the file itself is
    written, and the one beside it only holds the path.
    """

    def __init__(self, tree: Tree, staging: Staging, options: ExportOptions, parts: Parts, *, create: bool) -> None:
        tree.check_target(parts, create=create)
        self._tree = tree
        self._options = options
        self._parts = parts
        self._create = create
        self._path = "/".join(parts)
        try:
            self._hold: Hold = staging.hold(parts)
        except OSError as error:
            raise from_os(error, self._path) from error
        self._fd = self._hold.fd
        if options.mode == "in_place":
            self._fd = self._open_in_place()

    def write(self, data: memoryview, offset: int) -> None:
        """Write bytes. Raises the named error of what failed."""
        try:
            write_all(self._fd, data, offset)
        except OSError as error:
            raise from_os(error, self._path) from error

    def commit(self, size: int) -> Written:
        """Give the file its length and its name, and let go of the path."""
        with self._tree.parent(self._parts, create=self._create) as (directory, name):
            os.ftruncate(self._fd, size)
            if self._options.fsync == "finalize":
                os.fsync(self._fd)
            status = os.fstat(self._fd)
            if self._options.mode == "in_place":
                self.discard()
                return written(status)
            keep(self._hold, directory, name)
            self._fd = -1
            if self._options.fsync == "finalize":
                sync_directory(directory)
        return written(status)

    def discard(self) -> None:
        """Let go of the path; in ``atomic`` mode nothing else has happened. Idempotent."""
        if self._fd not in (-1, self._hold.fd):
            os.close(self._fd)
        self._fd = -1
        self._hold.discard()

    def _open_in_place(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            with self._tree.parent(self._parts, create=self._create) as (directory, name):
                return os.open(name, flags, 0o666, dir_fd=directory)
        except BaseException:
            self._hold.discard()
            raise


def put_whole(
    tree: Tree, staging: Staging, options: ExportOptions, parts: Parts, data: memoryview, *, create: bool
) -> Written:
    """Write a whole file in one go (WS-13). Whatever fails, in ``atomic`` mode the old file is whole."""
    with tree.parent(parts, create=create) as (directory, name), staging.held(parts) as hold:
        fd = hold.fd
        if options.mode == "in_place":
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=directory)
        try:
            write_all(fd, data, 0)
            if options.mode == "in_place":
                os.ftruncate(fd, len(data))
            if options.fsync == "finalize":
                os.fsync(fd)
            status = os.fstat(fd)
        finally:
            if fd != hold.fd:
                os.close(fd)
        if options.mode == "atomic":
            keep(hold, directory, name)
            if options.fsync == "finalize":
                sync_directory(directory)
    return written(status)


def keep(hold: Hold, directory: int, name: str) -> None:
    """Rename the file beside the tree to its place, with the mode of the file that it replaces."""
    with suppress(FileNotFoundError):
        old = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(old.st_mode) and stat.S_IMODE(old.st_mode) != stat.S_IMODE(os.fstat(hold.fd).st_mode):
            os.fchmod(hold.fd, stat.S_IMODE(old.st_mode))
    hold.keep(directory, name)


def sync_directory(directory: int) -> None:
    """Wait until the names of a directory are on the disk."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
