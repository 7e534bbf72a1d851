"""From a value to the parts of a payload.

One pass over the containers takes the large buffers out and refuses what would arrive as something else; rows of plain
values are left to msgspec as they are. Only when something was refused a second, slow pass finds out where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec.msgpack

from stagewire.codec import arrays
from stagewire.codec.explain import explain
from stagewire.codec.extensions import MAX_DEPTH, OUT_OF_BAND, Content, Ext
from stagewire.codec.wire import frame
from stagewire.errors import CodecError
from stagewire.spec.kv import Buffer

_ENCODER = msgspec.msgpack.Encoder()

_PLAIN = frozenset({type(None), bool, int, float, str})
_KEYS = frozenset({str, int})


def encode(value: Any) -> list[Buffer]:
    """Encode a payload: a head, and each large buffer by reference. `join` makes one ``bytes`` of them.

    Takes ``None``, bool, int (64 bits), float, str, bytes, bytearray, memoryview, datetime, numpy arrays and numbers,
    and list, tuple and dict (keys: str or int) of these, nested up to 100 deep. What it returns refers to the buffers
    of the value: change none of them while it is in use.

    Raises:
        CodecError: Something in the value does not travel; the message says where and what to send instead.
    """
    packer = Packer()
    try:
        body = _ENCODER.encode(packer.pack(value, 0))
    except (CodecError, OverflowError, ValueError, TypeError, BufferError, RecursionError) as error:
        raise CodecError(f"cannot encode {explain(value, MAX_DEPTH, check_leaf)}") from error
    return frame(body, packer.buffers)


def check_leaf(leaf: Any) -> None:
    """Encode a value that holds no others; raises what `encode` would have to explain."""
    _ENCODER.encode(Packer().pack(leaf, 0))


class Packer:
    """Turns a value into one that msgspec encodes as it should arrive; ``buffers`` has what travels beside it."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def pack(self, value: Any, depth: int) -> Any:
        """Return the value with buffers, arrays and dates replaced by extensions; shares what needs no change."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        packer = _PACKERS.get(kind) or _packer_of_base(value)
        return packer(self, value, depth)

    def pack_row(self, row: list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            raise CodecError("nested too deep")
        if _PLAIN.issuperset(map(type, row)):
            return row
        return [self.pack(item, depth + 1) for item in row]

    def pack_dict(self, mapping: dict[Any, Any], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            raise CodecError("nested too deep")
        if not _KEYS.issuperset(map(type, mapping)):
            raise CodecError("keys must be str or int")
        if _PLAIN.issuperset(map(type, mapping.values())):
            return mapping
        return {key: self.pack(item, depth + 1) for key, item in mapping.items()}

    def pack_bytes(self, value: bytes, _depth: int) -> Any:
        if len(value) < OUT_OF_BAND:
            return value
        return _extension(Ext.BYTES, self._place(value))

    def pack_bytearray(self, value: bytearray, _depth: int) -> Any:
        return _extension(Ext.BYTEARRAY, self._place(memoryview(value).toreadonly()))

    def pack_memoryview(self, value: memoryview, _depth: int) -> Any:
        by_reference = value.c_contiguous and value.nbytes > 0  # an empty view cannot be cast
        flat = value.toreadonly().cast("B") if by_reference else memoryview(value.tobytes())
        return _extension(Ext.MEMORYVIEW, self._place(flat))

    def pack_array(self, value: Any, _depth: int) -> Any:
        return _extension(Ext.ARRAY, (value.dtype.str, value.shape, self._place(arrays.content(value))))

    def pack_datetime(self, value: datetime, _depth: int) -> Any:
        return value if value.tzinfo is not None else _extension(Ext.NAIVE_DATETIME, value.isoformat())

    def _place(self, buffer: Buffer) -> Content:
        if len(buffer) < OUT_OF_BAND:
            return bytes(buffer)
        self.buffers.append(buffer)
        return len(self.buffers) - 1


_Packer = Callable[[Packer, Any, int], Any]

_PACKERS: dict[type, _Packer] = {
    bytes: Packer.pack_bytes,
    bytearray: Packer.pack_bytearray,
    memoryview: Packer.pack_memoryview,
    list: Packer.pack_row,
    tuple: Packer.pack_row,
    dict: Packer.pack_dict,
    datetime: Packer.pack_datetime,
}

_BASES: tuple[tuple[type, _Packer], ...] = (
    (int, lambda _packer, value, _depth: int(value)),
    (float, lambda _packer, value, _depth: float(value)),
    (str, lambda _packer, value, _depth: str.__str__(value)),
    (bytes, lambda packer, value, depth: packer.pack_bytes(bytes(value), depth)),
    (list, lambda packer, value, depth: packer.pack_row(list(value), depth)),
    (tuple, lambda packer, value, depth: packer.pack_row(tuple(value), depth)),
    (dict, lambda packer, value, depth: packer.pack_dict(dict(value), depth)),
)
"""What a value of a derived type travels as: an IntEnum as an int, a named tuple as a list, a defaultdict as a dict."""


def _packer_of_base(value: Any) -> _Packer:
    if arrays.is_array(value):
        return Packer.pack_array
    number = arrays.as_scalar(value)
    if number is not None:
        return lambda _packer, _value, _depth: number
    for base, packer in _BASES:
        if isinstance(value, base):
            return packer
    raise CodecError("of a type that does not travel")


def _extension(code: Ext, content: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(int(code), _ENCODER.encode(content))
