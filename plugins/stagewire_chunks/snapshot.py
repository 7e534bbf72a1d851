"""Snapshot isolation (CH-2): what the caller changes after `save_async` never shows.

Plain data (dict, list, tuple, set, text, bytes, numbers, nested at will) is copied here, faster than `copy.deepcopy`
does it (five times for long rows), sharing what cannot change. All else is left to `copy.deepcopy`, and so to the
value's own ``__deepcopy__``. Aliases stay aliases, and cycles are fine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

Memo = dict[int, Any]

_FIXED = frozenset({type(None), bool, int, float, complex, str, bytes, range, type(...)})
"""Types whose values cannot change."""


class HandOver(Generic[T]):
    """Wraps a value that the caller gives away: `save_async` passes on the value itself instead of copying it.

    For large buffers and arrays. May stand for the payload or anywhere inside it; builder, transport and reader see the
    bare value. The caller must not change the value afterwards.
    """

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __deepcopy__(self, _memo: Memo) -> T:
        return self.value

    def __repr__(self) -> str:
        return f"HandOver({type(self.value).__name__})"


def snapshot(value: Any) -> Any:
    """Return a copy of a payload that shares nothing changeable with it, except what was handed over.

    Raises whatever a foreign object's ``__deepcopy__`` raises, and `RecursionError` when the nesting is too deep.
    """
    return value if type(value) in _FIXED else _copy(value, {})


def _copy(value: Any, memo: Memo) -> Any:
    kind = type(value)
    if kind in _FIXED:
        return value
    known = memo.get(id(value))
    if known is not None:
        return known
    copier = _COPIERS.get(kind)
    return copier(value, memo) if copier else copy.deepcopy(value, memo)


def _copy_list(value: list[Any], memo: Memo) -> list[Any]:
    copied: list[Any] = []
    memo[id(value)] = copied  # before the items: one of them may be the list itself
    copied.extend(value if _FIXED.issuperset(map(type, value)) else [_copy(item, memo) for item in value])
    return copied


def _copy_dict(value: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    copied: dict[Any, Any] = {}
    memo[id(value)] = copied
    if _FIXED.issuperset(map(type, value)) and _FIXED.issuperset(map(type, value.values())):
        copied.update(value)
    else:
        copied.update({_copy(key, memo): _copy(item, memo) for key, item in value.items()})
    return copied


def _copy_tuple(value: tuple[Any, ...], memo: Memo) -> tuple[Any, ...]:
    if _FIXED.issuperset(map(type, value)):
        return value
    copied = tuple([_copy(item, memo) for item in value])
    return cast("tuple[Any, ...]", memo.setdefault(id(value), copied))  # a cycle may have copied it meanwhile


def _copy_set(value: set[Any], memo: Memo) -> set[Any]:
    copied = value.copy() if _FIXED.issuperset(map(type, value)) else {_copy(item, memo) for item in value}
    memo[id(value)] = copied
    return copied


def _copy_frozenset(value: frozenset[Any], memo: Memo) -> frozenset[Any]:
    if _FIXED.issuperset(map(type, value)):
        return value
    return frozenset([_copy(item, memo) for item in value])


def _copy_memoryview(value: memoryview, memo: Memo) -> memoryview:
    if value.readonly and type(value.obj) is bytes:
        return value
    flat = cast("Any", memoryview(value.tobytes()))
    copied: memoryview = flat if value.ndim == 1 and value.format == "B" else flat.cast(value.format, value.shape)
    memo[id(value)] = copied
    return copied


def _copy_bytearray(value: bytearray, memo: Memo) -> bytearray:
    copied = memo[id(value)] = bytearray(value)
    return copied


def _hand_over(value: HandOver[Any], _memo: Memo) -> Any:
    return value.value


_COPIERS: dict[type, Callable[[Any, Memo], Any]] = {
    list: _copy_list,
    dict: _copy_dict,
    tuple: _copy_tuple,
    set: _copy_set,
    frozenset: _copy_frozenset,
    bytearray: _copy_bytearray,
    memoryview: _copy_memoryview,
    HandOver: _hand_over,
}
