"""Paths inside an export. Nothing outside it is ever reached: no ``..``, no symbolic link, at any moment (S3-12).

Every component is opened relative to the directory before it and never through a link, so that a link which somebody
makes meanwhile leads nowhere either.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from stagewire_writes.errors import IsDirectory, NotDirectory, NotFound, PathRefused, from_os

STAGING = ".stagewire"
"""The directory at the root of an export in which unfinished files are."""

DIRECTORY_MODE = 0o755
MAX_NAME = 255
MAX_PATH = 4_096

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Parts = tuple[str, ...]


def parse(path: str, *, root: bool = False) -> Parts:
    """Return the components of a path. With ``root`` the empty path, which is the export itself, is one too.

    Raises:
        PathRefused: It is empty, absolute, too long or reserved, or holds ``.``, ``..``, an empty name or a NUL.
    """
    if root and path in ("", "/"):
        return ()
    parts = tuple(path.split("/"))
    if "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise PathRefused(f"{path!r} must be names separated by single slashes, without '.', '..', NUL or an empty one")
    if parts[0] == STAGING:
        raise PathRefused(f"{path!r} is reserved: choose a path that does not begin with {STAGING}")
    try:
        sizes = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError as error:
        raise PathRefused(f"{path!r} cannot be a file name: {error.reason}") from error
    if max(sizes) > MAX_NAME or sum(sizes) + len(sizes) > MAX_PATH:
        raise PathRefused(f"a path of {sum(sizes)} bytes with names of up to {max(sizes)} bytes is too long")
    return parts


class Tree:
    """A directory tree, held by a descriptor: renaming or replacing its root does not move it. From any thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
            self.fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise from_os(error, str(root)) from error

    def close(self) -> None:
        """Let go of the root. Idempotent."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    @contextmanager
    def parent(self, parts: Parts, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory of a path for the length of the block; yields it and the last name.

        With ``create`` missing directories are made, with mode 0755; those that are there keep theirs (WS-13).

        Raises:
            WriteError: The named error of what is in the way, or of what failed in the block.
        """
        path = "/".join(parts)
        try:
            fd = self._walk(parts[:-1], create=create)
            try:
                yield fd, parts[-1]
            finally:
                if fd != self.fd:
                    os.close(fd)
        except OSError as error:
            raise from_os(error, path) from error

    @contextmanager
    def directory(self, parts: Parts) -> Iterator[int]:
        """Open a directory for reading for the length of the block."""
        path = "/".join(parts)
        try:
            fd = self._walk(parts, create=False)
            try:
                readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
            finally:
                if fd != self.fd:
                    os.close(fd)
            try:
                yield readable
            finally:
                os.close(readable)
        except OSError as error:
            raise from_os(error, path) from error

    def check_target(self, parts: Parts, *, create: bool) -> None:
        """Raise what would keep a file from being written at a path, as far as that can be known beforehand."""
        path = "/".join(parts)
        try:
            with self.parent(parts) as (fd, name):
                _require_writable(fd, path)
                with suppress(FileNotFoundError):
                    if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                        raise IsDirectory(f"{path!r}: it is a directory; name a file")
        except NotFound:
            if not create:
                raise
            self._check_makeable(parts, path)

    def _check_makeable(self, parts: Parts, path: str) -> None:
        """Look at the deepest directory of the path that is there."""
        for depth in range(len(parts) - 2, -1, -1):
            try:
                with self.directory(parts[:depth]) as fd:
                    _require_writable(fd, path)
            except NotFound:
                continue
            return

    def _walk(self, parts: Sequence[str], *, create: bool) -> int:
        """Return a descriptor of a directory: a new one, or that of the root."""
        fd = self.fd
        for part in parts:
            try:
                inner = self._enter(fd, part, create=create)
            finally:
                if fd != self.fd:
                    os.close(fd)
            fd = inner
        return fd

    def _enter(self, fd: int, part: str, *, create: bool) -> int:
        try:
            return os.open(part, _DIRECTORY, dir_fd=fd)
        except FileNotFoundError:
            if not create:
                raise
            self._make(fd, part)
            return os.open(part, _DIRECTORY, dir_fd=fd)
        except NotADirectoryError:
            raise _in_the_way(os.stat(part, dir_fd=fd, follow_symlinks=False).st_mode, part, part) from None

    def _make(self, fd: int, part: str) -> None:
        try:
            os.mkdir(part, DIRECTORY_MODE, dir_fd=fd)
        except FileExistsError:
            return
        os.chmod(part, DIRECTORY_MODE, dir_fd=fd)  # whatever the umask says


def _require_writable(directory: int, path: str) -> None:
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=directory):
        raise from_os(PermissionError(errno.EACCES, "not writable"), path)


def _in_the_way(mode: int, path: str, part: str) -> PathRefused | NotDirectory:
    if stat.S_ISLNK(mode):
        return PathRefused(f"{path!r}: {part!r} is a symbolic link, which is not followed")
    return NotDirectory(f"{path!r}: {part!r} is a file, not a directory")
