"""Where lines come from: files, plain or compressed, rotated sets, standard input; as blocks of whole lines."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Literal, cast

from stagewire import StagewireError
from stagewire_logs.damage import LONG, OVERSIZED

READ = 512 * 1024
"""Bytes of one read; less than `LONG`, so that a long line is always put together from several."""

Compression = Literal["", "gzip", "zstd", "pipe"]
"""How a source is packed; what a pipe holds is not known before it is read."""

_MAGIC: Sequence[tuple[bytes, Compression]] = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))
_ROTATED = re.compile(r"[.-](\d+|\d{4}-?\d{2}-?\d{2}.*)(\.gz|\.zst)?")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of one source that is read on its own.

    Attributes:
        name: What the source is called in reports.
        path: The file; ``None`` is standard input.
        compression: How it is packed.
        start: The byte where it begins: the first line that begins at or after it.
        end: The byte where it ends: the last line that begins before it; ``None`` for all.
        first: Whether it is the first of its source.
        size: Bytes to read, as far as that is known; for a progress bar.
    """

    name: str
    path: Path | None
    compression: Compression = ""
    start: int = 0
    end: int | None = None
    size: int = 0

    @property
    def first(self) -> bool:
        """Whether it is the first of its source."""
        return self.start == 0


def part_of(name: str) -> Part:
    """Return all of a file, or of standard input for ``-``.

    Raises:
        StagewireError: The file is not there or must not be read; it says which.
    """
    if name == "-":
        return Part("standard input", None)
    path = Path(name)
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            return Part(name, path, "pipe")
        with path.open("rb") as file:
            compression = _packed(file.read(4))
    except OSError as error:
        raise StagewireError(f"{name}: {error.strerror}") from error
    return Part(name, path, compression, size=status.st_size)


def _packed(head: bytes) -> Compression:
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "")


def with_rotated(name: str) -> list[str]:
    """Return a file and its rotated ones (``app.log.1``, ``app.log.2.gz``, ``app.log-20261201``), oldest first."""
    path = Path(name)
    siblings = [each for each in path.parent.glob(f"{path.name}*") if _ROTATED.fullmatch(each.name[len(path.name) :])]
    return [*(str(each) for each in sorted(siblings, key=lambda each: each.stat().st_mtime)), name]


@contextmanager
def _opened(part: Part) -> Iterator[BinaryIO]:
    """Open a part's source, unpacked. Standard input stays open."""
    if part.path is None:
        yield _piped(cast("BufferedReader", sys.stdin.buffer))
    elif part.compression == "pipe":
        with part.path.open("rb") as pipe:
            yield _piped(pipe)
    else:
        plain = cast("BinaryIO", part.path.open("rb", buffering=0)) if not part.compression else None
        with plain or _unpacked(part.path, part.compression) as file:
            yield file


def _piped(pipe: BufferedReader) -> BinaryIO:
    compression = _packed(pipe.peek(4)[:4])
    return _unpacked(pipe, compression) if compression else cast("BinaryIO", pipe)


def _unpacked(source: Path | BufferedReader, compression: Compression) -> BinaryIO:
    if compression == "gzip":
        return cast("BinaryIO", gzip.open(source, "rb"))
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return cast("BinaryIO", import_module(name).ZstdFile(source))
    except ImportError as error:
        raise StagewireError('zstd files need the extra "logs": pip install "stagewire[logs]"') from error


def _reads(file: BinaryIO) -> Iterator[bytes]:
    """Yield what the file holds, in pieces of about `READ`; also what comes before an error."""
    read = cast("Callable[[int], bytes]", getattr(file, "read1", file.read))
    held: list[bytes] = []
    size = 0
    try:
        while data := read(READ):
            held.append(data)
            size += len(data)
            if size >= READ // 2:
                yield b"".join(held)
                held, size = [], 0
    except Exception:
        yield b"".join(held)
        raise
    if rest := b"".join(held):
        yield rest


def blocks(part: Part, *, broken: Callable[[str], None], oversized: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the part's lines, many in one block; a long line (`LONG`) is a block of its own.

    Args:
        part: What to read.
        broken: Takes the reason when the source cannot be read to its end; what came before was yielded.
        oversized: Takes the beginning of each line that is left out, because it exceeds `OVERSIZED`.
    """
    try:
        with _opened(part) as file:
            yield from _whole_lines(_bounded(file, part), oversized)
    except StagewireError:
        raise
    except Exception as error:  # noqa: BLE001 — each decompressor has errors of its own, and the other files go on
        broken(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _bounded(file: BinaryIO, part: Part) -> Iterator[bytes]:
    """Yield what belongs to the part: from the first line that begins in it to the end of the last one that does."""
    at, inside = part.start, part.first
    if not inside:
        at -= 1  # the byte before tells whether a line begins right at the start
        file.seek(at)
    reads = _reads(file)
    for data in reads:
        begin = 0 if inside else data.find(b"\n") + 1
        inside = inside or begin > 0
        left = len(data) + 1 if part.end is None else part.end - at
        if left <= len(data):
            if inside and begin < left:
                yield from _to_line_end(reads, data[begin:], left - begin)
            return
        if inside:
            yield data[begin:]
        at += len(data)


def _to_line_end(reads: Iterator[bytes], data: bytes, end: int) -> Iterator[bytes]:
    """Yield up to the end of the line that holds the byte before ``end``."""
    found = data.find(b"\n", end - 1)
    while found < 0 and data:
        yield data
        data = next(reads, b"")
        found = data.find(b"\n")
    yield data[: found + 1]


def _whole_lines(reads: Iterator[bytes], oversized: Callable[[bytes], None]) -> Iterator[bytes]:
    held: list[bytes] = []
    size, skipping = 0, False
    for data in reads:
        first, last = data.find(b"\n") + 1, data.rfind(b"\n") + 1
        if not first:
            if not skipping:
                held.append(data)
                size += len(data)
            if size > OVERSIZED:
                oversized(held[0])
                held, size, skipping = [], 0, True
            continue
        if skipping:
            begin, skipping = first, False
        elif size + first >= LONG:
            yield b"".join((*held, data[:first]))
            begin = first
        else:
            begin = 0
        if begin < last:
            yield b"".join((*held, data[:last])) if not begin else data[begin:last]
        held = [data[last:]] if last < len(data) else []
        size = len(data) - last
    if rest := b"".join(held):
        yield rest
