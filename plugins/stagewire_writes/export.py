"""One export: a directory tree and everything that may be done with it. Everything here blocks; run it in threads."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Sequence

from stagewire_writes.checksums import checksum
from stagewire_writes.errors import AccessDenied, ChecksumMismatch, FileChanged, IsDirectory, PathRefused, from_os
from stagewire_writes.files import SessionFile, keep, put_whole, version_of, write_all, written
from stagewire_writes.options import ExportOptions, Permission
from stagewire_writes.paths import STAGING, Parts, Tree, parse
from stagewire_writes.protocol import Entry, Listing, Written
from stagewire_writes.staging import Staging

MAX_LISTING = 10_000
MAX_READ = 4 * 1024 * 1024
_COPY = 16 * 1024 * 1024


class Export:
    """A directory tree that an agent serves. Every path is confined to it (S3-12); any thread may call.

    Raises:
        WriteError: The root cannot be had.
    """

    def __init__(self, name: str, options: ExportOptions) -> None:
        self.name = name
        self.options = options
        self._tree = Tree(options.root)
        try:
            self._staging = Staging(self._tree)
        except BaseException:
            self._tree.close()
            raise

    def close(self) -> None:
        """Let go of the tree. Idempotent."""
        self._staging.close()
        self._tree.close()

    def require(self, permission: Permission) -> None:
        """Raise `AccessDenied` unless the export allows it."""
        if permission not in self.options.allow:
            raise AccessDenied(f"export {self.name!r} does not allow to {permission}: see its `allow`")

    def open_session(self, path: str, *, create_parents: bool) -> SessionFile:
        """Take a path to write a file (WS-12)."""
        self.require("write")
        return SessionFile(self._tree, self._staging, self.options, parse(path), create=create_parents)

    def put_whole(self, path: str, data: memoryview, crc: int, *, create_parents: bool) -> Written:
        """Verify and write a whole small file (WS-13, WS-18)."""
        self.require("write")
        parts = parse(path)
        if checksum(data) != crc:
            raise ChecksumMismatch(f"{path!r}: the {len(data)} bytes are not those that were sent")
        return put_whole(self._tree, self._staging, self.options, parts, data, create=create_parents)

    def stat(self, path: str) -> Entry:
        """Return how a file or directory is."""
        self.require("read")
        parts = parse(path, root=True)
        if not parts:
            return _entry("", os.fstat(self._tree.fd))
        with self._tree.parent(parts) as (directory, name):
            return _entry(name, os.stat(name, dir_fd=directory, follow_symlinks=False))

    def list(self, path: str, after: str, limit: int) -> Listing:
        """Return up to ``limit`` entries of a directory whose names come after one."""
        self.require("read")
        parts = parse(path, root=True)
        limit = max(1, min(limit, MAX_LISTING))
        with self._tree.directory(parts) as fd, os.scandir(fd) as found:
            names = (each.name for each in found if each.name > after and (parts or each.name != STAGING))
            first = heapq.nsmallest(limit + 1, names)
            entries = [entry for name in first[:limit] if (entry := _try_entry(name, fd)) is not None]
        return Listing(entries, len(first) > limit)

    def read(self, path: str, offset: int, length: int, version: str) -> tuple[memoryview, Written]:
        """Return bytes of a file (fewer at its end), and the file that they are of. Raises `FileChanged`."""
        self.require("read")
        fd = self._open(parse(path), os.O_RDONLY)
        try:
            status = os.fstat(fd)
            if version and version_of(status) != version:
                raise FileChanged(f"{path!r} was replaced or changed: read it anew")
            buffer = bytearray(max(0, min(length, MAX_READ, status.st_size - offset)))
            count = os.preadv(fd, [buffer], offset) if buffer else 0
            return memoryview(buffer)[:count].toreadonly(), written(status)
        except OSError as error:
            raise from_os(error, path) from error
        finally:
            os.close(fd)

    def remove(self, path: str) -> None:
        """Remove a file, or a directory that is empty."""
        self.require("delete")
        with self._tree.parent(parse(path)) as (directory, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                os.rmdir(name, dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; does nothing when it is there."""
        self.require("write")
        with self._tree.parent((*parse(path), "."), create=True):
            pass

    def rename(self, path: str, to: str) -> None:
        """Move a file, replacing what is at its new path, whose parents are made."""
        self.require("write")
        self.require("delete")
        with (
            self._tree.parent(parse(path)) as (source, name),
            self._tree.parent(parse(to), create=True) as (target, new),
        ):
            os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)

    def write_chunk(self, path: str, offset: int, data: memoryview, crc: int) -> None:
        """Write bytes into a file where it is, making it where it is missing: the way without sessions (S3-1)."""
        self.require("write")
        if checksum(data) != crc:
            raise ChecksumMismatch(f"{path!r} at {offset}: the {len(data)} bytes are not those that were sent")
        fd = self._open(parse(path), os.O_WRONLY | os.O_CREAT)
        try:
            write_all(fd, data, offset)
        except OSError as error:
            raise from_os(error, path) from error
        finally:
            os.close(fd)

    def truncate(self, path: str, size: int) -> Written:
        """Set a file's length, making it where it is missing."""
        self.require("write")
        fd = self._open(parse(path), os.O_WRONLY | os.O_CREAT)
        try:
            os.ftruncate(fd, size)
            return written(os.fstat(fd))
        except OSError as error:
            raise from_os(error, path) from error
        finally:
            os.close(fd)

    def concatenate(self, path: str, parts: Sequence[str]) -> Written:
        """Make one file of several without their bytes leaving this host; the parts stay."""
        self.require("write")
        self.require("read")
        target = parse(path)
        with self._tree.parent(target, create=True) as (directory, name), self._staging.held(target) as hold:
            for part in parts:
                self._append(hold.fd, part)
            if self.options.fsync == "finalize":
                os.fsync(hold.fd)
            status = os.fstat(hold.fd)
            keep(hold, directory, name)
        return written(status)

    def reap(self, older: float) -> int:
        """Remove the unfinished files of killed processes (WS-19)."""
        return self._staging.reap(older)

    def _append(self, target: int, part: str) -> None:
        fd = self._open(parse(part), os.O_RDONLY)
        try:
            while os.sendfile(target, fd, None, _COPY):
                pass
        finally:
            os.close(fd)

    def _open(self, parts: Parts, flags: int) -> int:
        path = "/".join(parts)
        safe = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with self._tree.parent(parts) as (directory, name):
            fd = os.open(name, flags | safe, 0o666, dir_fd=directory)
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            return fd
        os.close(fd)
        if stat.S_ISDIR(mode):
            raise IsDirectory(f"{path!r}: it is a directory; name a file")
        raise PathRefused(f"{path!r} is neither a file nor a directory")


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(name, stat.S_ISDIR(status.st_mode), status.st_size, status.st_mtime, version_of(status))


def _try_entry(name: str, directory: int) -> Entry | None:
    try:
        return _entry(name, os.stat(name, dir_fd=directory, follow_symlinks=False))
    except FileNotFoundError:
        return None
