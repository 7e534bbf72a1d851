"""The frame around an encoded payload: a header, the lengths of the out-of-band buffers, the body, then the buffers.

A payload is a sequence of parts: the head (all but the buffers) and each buffer. Joined into one, every part begins at
a multiple of `ALIGN`, so that arrays which are views of the whole are aligned. The version counts changes that an older
reader could not understand.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from stagewire.errors import CodecError
from stagewire.spec.kv import Buffer

MAGIC = b"\xc1SW"
"""Begins every payload; 0xC1 is the one byte that never begins a msgpack value."""

VERSION = 1
ALIGN = 16

_HEADER = struct.Struct("<3sBII")  # magic, version, length of the body, number of buffers
_LENGTH = struct.Struct("<Q")
_MAX_BODY = 2**32 - 1


def frame(body: bytes, buffers: Sequence[Buffer]) -> list[Buffer]:
    """Return the parts of a payload: the head, then the buffers as they are."""
    if len(body) > _MAX_BODY:
        raise CodecError(f"the payload has {len(body)} bytes beside its buffers: send it in parts of less than 4 GiB")
    header = _HEADER.pack(MAGIC, VERSION, len(body), len(buffers))
    return [b"".join((header, *(_LENGTH.pack(len(buffer)) for buffer in buffers), body)), *buffers]


def size(parts: Sequence[Buffer]) -> int:
    """Return how many bytes `join` would return."""
    return sum(_padded(len(part)) for part in parts[:-1]) + len(parts[-1])


def join(parts: Sequence[Buffer]) -> bytes:
    """Return the parts as one ``bytes``; this copies every buffer once."""
    return b"".join(_aligned(parts))


def split(data: Buffer | Sequence[Buffer]) -> tuple[memoryview, list[Buffer]]:
    """Return the body and the buffers of a payload, joined or in parts, without a copy.

    Raises:
        CodecError: It is not a payload, is of a newer version, or its lengths do not add up.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return _split_joined(_flat(data))
    if not data:
        raise CodecError("there is no payload: no parts")
    body, lengths, end = _read_head(_flat(data[0]))
    if end != len(data[0]) or lengths != [len(part) for part in data[1:]]:
        raise CodecError("the payload's parts are not those that its head declares: were some lost or reordered?")
    return body, list(data[1:])


def _split_joined(view: memoryview) -> tuple[memoryview, list[Buffer]]:
    body, lengths, at = _read_head(view)
    buffers: list[Buffer] = []
    for length in lengths:
        at = _padded(at)
        buffers.append(view[at : at + length])
        at += length
    if at != len(view):
        raise CodecError(
            f"the payload declares {at} bytes and has {len(view)}: it was cut short, or something follows it"
        )
    return body, buffers


def _read_head(view: memoryview) -> tuple[memoryview, list[int], int]:
    """Return the body, the declared lengths, and where the head ends."""
    if len(view) < _HEADER.size:
        raise CodecError(f"this is no payload: {len(view)} bytes are less than a header")
    magic, version, body_size, count = _HEADER.unpack_from(view)
    if magic != MAGIC:
        raise CodecError("this is no payload: it does not begin as stagewire.codec begins it")
    if version != VERSION:
        raise CodecError(
            f"the payload is of version {version} and this program reads {VERSION}: upgrade the older side"
        )
    begin = _HEADER.size + count * _LENGTH.size
    end = begin + body_size
    if end > len(view):
        raise CodecError(f"the payload declares a head of {end} bytes and has {len(view)}: it was cut short")
    lengths = [_LENGTH.unpack_from(view, at)[0] for at in range(_HEADER.size, begin, _LENGTH.size)]
    return view[begin:end], lengths, end


def _flat(data: Buffer) -> memoryview:
    view = memoryview(data)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def _padded(length: int) -> int:
    return -(-length // ALIGN) * ALIGN


def _aligned(parts: Sequence[Buffer]) -> Iterator[Buffer]:
    last = len(parts) - 1
    for index, part in enumerate(parts):
        yield part
        if index != last:
            yield bytes(_padded(len(part)) - len(part))
