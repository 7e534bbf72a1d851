"""Unfinished files, beside the tree: one for each path that is being written, locked while somebody writes it.

The kernel's lock is what holds the path (WS-12): it excludes other agents of the same directory too, and it ends with
its process, however that ends. What a killed process leaves is found by its missing lock (WS-19).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b

from stagewire_writes.errors import PathHeld, from_os
from stagewire_writes.paths import STAGING, Parts, Tree

SUFFIX = ".part"
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class Hold:
    """The exclusive hold of a path, and the file beside it. Used by one thread at a time."""

    def __init__(self, folder: int, name: str, fd: int) -> None:
        self.folder = folder
        self.name = name
        self.fd = fd

    def keep(self, directory: int, name: str) -> None:
        """Give the file its final name, replacing what is there."""
        os.rename(self.name, name, src_dir_fd=self.folder, dst_dir_fd=directory)
        self._let_go()

    def discard(self) -> None:
        """Remove the file. Idempotent."""
        if self.fd >= 0:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self.folder)
            self._let_go()

    def _let_go(self) -> None:
        fd, self.fd = self.fd, -1
        os.close(fd)


class Staging:
    """The folder of unfinished files of one export. From any thread."""

    def __init__(self, tree: Tree) -> None:
        try:
            with suppress(FileExistsError):
                os.mkdir(STAGING, 0o700, dir_fd=tree.fd)
            self.fd = os.open(STAGING, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=tree.fd)
        except OSError as error:
            raise from_os(error, STAGING) from error

    def close(self) -> None:
        """Let go of the folder. Idempotent."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def hold(self, parts: Parts) -> Hold:
        """Take the path and return its empty file. Raises `PathHeld`."""
        path = "/".join(parts)
        name = blake2b(os.fsencode(path), digest_size=16).hexdigest() + SUFFIX
        while True:
            fd = os.open(name, _FLAGS | os.O_CREAT, 0o666, dir_fd=self.fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._names(name, fd):
                    os.ftruncate(fd, 0)
                    return Hold(self.fd, name, fd)
            except BlockingIOError:
                os.close(fd)
                raise PathHeld(f"{path!r} is being written by somebody else: try again when that has ended") from None
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # its last holder was just done with it

    @contextmanager
    def held(self, parts: Parts) -> Iterator[Hold]:
        """Take the path for the length of the block; what was not kept is discarded."""
        hold = self.hold(parts)
        try:
            yield hold
        finally:
            hold.discard()

    def reap(self, older: float) -> int:
        """Remove what killed processes left more than ``older`` seconds ago; returns how many files that were."""
        latest = time.time() - older
        with os.scandir(self.fd) as found:
            names = [each.name for each in found if each.name.endswith(SUFFIX)]
        return sum(self._reap(name, latest) for name in names)

    def _reap(self, name: str, latest: float) -> bool:
        try:
            fd = os.open(name, _FLAGS, dir_fd=self.fd)
        except OSError:
            return False
        try:
            if os.fstat(fd).st_mtime > latest:
                return False
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._names(name, fd):
                os.unlink(name, dir_fd=self.fd)
                return True
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        return False

    def _names(self, name: str, fd: int) -> bool:
        """Whether the name still is that of the open file."""
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return found.st_ino == os.fstat(fd).st_ino
