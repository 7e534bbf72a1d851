"""What a stage's process and its owner say to each other: frames of msgpack over two pipes. Never pickle."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from stagewire.codec import decode, encode, join

LENGTH = struct.Struct("<I")
"""Before each frame: how many bytes follow."""


class Frame(NamedTuple):
    """One thing said.

    Owner to process: ``make`` (what to run), ``start`` a request, ``chunk`` / ``end`` / ``broken`` in answer to
    ``want``, ``room`` for one more output, ``stop`` a request.
    Process to owner: ``ready`` or ``unready``, ``want`` a chunk, ``out`` one, ``done`` or ``failed`` with a request.
    """

    kind: str
    run: int = 0
    value: Any = None


def pack(frame: Frame) -> bytes:
    """Return a frame as bytes, its length first. Raises `CodecError` when its value cannot travel."""
    body = join(encode(list(frame)))
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> Frame:
    """Return the frame of these bytes, without the length."""
    kind, run, value = decode(body)
    return Frame(kind, run, value)
