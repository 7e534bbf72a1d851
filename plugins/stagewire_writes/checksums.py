"""CRC-32 of frames, and of whole objects out of those of their frames: no byte is read twice (WS-18)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
"""The polynomial 1 in the reflected order of CRC-32."""


def checksum(data: bytes | memoryview) -> int:
    """Return the CRC-32 of the bytes. Lets other threads run while it works on large ones."""
    return zlib.crc32(data)


def checksums(frames: Sequence[memoryview]) -> list[int]:
    """Return the CRC-32 of each frame."""
    return [zlib.crc32(frame) for frame in frames]


def combine(first: int, second: int, length: int) -> int:
    """Return the CRC-32 of two runs of bytes, of which the second has ``length`` bytes, from those of the two."""
    return _multiply(_shift(length), first) ^ second


class ObjectChecksum:
    """The CRC-32 of an object whose frames may be known in any order."""

    def __init__(self) -> None:
        self.value = 0
        """Of the frames 0 to ``frames`` - 1."""
        self.frames = 0
        self._early: dict[int, tuple[int, int]] = {}

    def add(self, sequence: int, value: int, length: int) -> None:
        """Take in one frame; a repeat changes nothing."""
        if sequence >= self.frames:
            self._early[sequence] = value, length
        while (known := self._early.pop(self.frames, None)) is not None:
            self.value = combine(self.value, *known)
            self.frames += 1


def _multiply(a: int, b: int) -> int:
    """Multiply two polynomials modulo that of CRC-32."""
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = (b >> 1) ^ (_POLYNOMIAL if b & 1 else 0)
    return product


@lru_cache(maxsize=256)
def _shift(length: int) -> int:
    """Return x to the power of the number of bits in ``length`` bytes."""
    result, square = _ONE, _ONE >> 8
    while length:
        if length & 1:
            result = _multiply(result, square)
        square = _multiply(square, square)
        length >>= 1
    return result
