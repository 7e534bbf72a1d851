"""From the parts of a payload, or the joined whole, to the value. The bytes may come from anybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec.msgpack

from stagewire.codec import arrays
from stagewire.codec.extensions import MAX_DEPTH, Ext
from stagewire.codec.wire import split
from stagewire.errors import CodecError
from stagewire.spec.kv import Buffer

_CONTAINERS = frozenset({list, dict})
_KEYS = frozenset({str, int})


def decode(data: Buffer | Sequence[Buffer], *, views: bool = False) -> Any:
    """Decode a payload, given joined or in parts. It copies no large buffer that it need not copy.

    Types come back as they were sent, with these exceptions: a tuple is a list, a memoryview is read-only and flat, an
    array is read-only (both refer to ``data``), a datetime with a time zone is in UTC, and a value of a derived type is
    of its base type. Large ``bytes`` are the very part when given in parts as ``bytes``, and a copy otherwise; with
    ``views`` large bytes and bytearrays come as read-only memoryviews, so that nothing is ever copied.

    Raises:
        CodecError: These bytes are not a whole payload of a version that this program knows. No input raises anything
            else, runs code, or makes more than a small multiple of its own size.
    """
    try:
        body, buffers = split(data)
        unpacker = Unpacker(buffers, views=views)
        value = msgspec.msgpack.decode(body, ext_hook=unpacker.unpack)
        unpacker.check_all_used()
        _check(value, 0)
    except CodecError:
        raise
    except (msgspec.MsgspecError, RecursionError, TypeError, ValueError, OverflowError, BufferError) as error:
        raise CodecError(f"the payload cannot be decoded: {error}") from error
    return value


class Unpacker:
    """Turns extensions back into what they stand for. Each out-of-band buffer belongs to exactly one of them."""

    def __init__(self, buffers: list[Buffer], *, views: bool) -> None:
        self._buffers: list[Buffer | None] = list(buffers)
        self._views = views

    def unpack(self, code: int, data: memoryview) -> Any:
        """Return the value of one extension; the hook of msgspec."""
        unpack = _UNPACKERS.get(code)
        if unpack is None:
            raise CodecError(f"the payload holds an extension of the unknown kind {code}")
        return unpack(self, msgspec.msgpack.decode(data))

    def check_all_used(self) -> None:
        """Raise when a buffer belongs to nothing."""
        if any(buffer is not None for buffer in self._buffers):
            raise CodecError("the payload has a buffer that no value refers to")

    def unpack_bytes(self, content: Any) -> Any:
        buffer = self._content(content)
        if self._views and not isinstance(content, bytes):
            return memoryview(buffer).toreadonly()
        return buffer if type(buffer) is bytes else bytes(buffer)

    def unpack_bytearray(self, content: Any) -> Any:
        buffer = self._content(content)
        if self._views and not isinstance(content, bytes):
            return memoryview(buffer).toreadonly()
        return bytearray(buffer)

    def unpack_memoryview(self, content: Any) -> Any:
        return memoryview(self._content(content)).toreadonly()

    def unpack_array(self, content: Any) -> Any:
        if not isinstance(content, list) or len(content) != 3:  # noqa: PLR2004 — dtype, shape, content
            raise CodecError("the payload describes an array without saying which")
        dtype, shape, items = content
        return arrays.rebuild(dtype, shape, memoryview(self._content(items)).toreadonly())

    def unpack_naive_datetime(self, content: Any) -> Any:
        value = datetime.fromisoformat(content)
        if value.tzinfo is not None:
            raise CodecError("the payload has a datetime with a time zone where it declares one without")
        return value

    def _content(self, content: Any) -> Buffer:
        if isinstance(content, bytes):
            return content
        if type(content) is not int or not 0 <= content < len(self._buffers):
            raise CodecError("the payload refers to a buffer that it does not have")
        buffer, self._buffers[content] = self._buffers[content], None
        if buffer is None:
            raise CodecError("the payload refers twice to the same buffer")
        return buffer


_UNPACKERS: dict[int, Callable[[Unpacker, Any], Any]] = {
    Ext.BYTES: Unpacker.unpack_bytes,
    Ext.BYTEARRAY: Unpacker.unpack_bytearray,
    Ext.MEMORYVIEW: Unpacker.unpack_memoryview,
    Ext.ARRAY: Unpacker.unpack_array,
    Ext.NAIVE_DATETIME: Unpacker.unpack_naive_datetime,
}


def _check(value: Any, depth: int) -> None:
    """Raise when containers nest too deep or a key is neither str nor int."""
    kind = type(value)
    if kind not in _CONTAINERS:
        return
    if depth >= MAX_DEPTH:
        raise CodecError(f"the payload nests more than {MAX_DEPTH} deep")
    if kind is dict and not _KEYS.issuperset(map(type, value)):
        raise CodecError("the payload has a dict whose keys are neither str nor int")
    items = value.values() if kind is dict else value
    if not _CONTAINERS.isdisjoint(map(type, items)):
        for item in items:
            _check(item, depth + 1)
