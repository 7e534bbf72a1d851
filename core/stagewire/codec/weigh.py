"""How much a payload weighs, without encoding it: what in-process queues count against their byte bounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any

_FRAME = 16
"""What a number, a date or the frame of a container counts for: about what it costs in memory beside its content."""

_SHORT = 16
"""Rows of up to so many items are weighed one by one; longer ones by their types first."""

_NUMBERS = frozenset({type(None), bool, int, float})

_TEXTS = frozenset({str, bytes, bytearray})

_CONTAINERS = (dict, list, tuple, set, frozenset)

_LENGTHS: dict[type, Callable[[Any], int]] = {
    **dict.fromkeys(_NUMBERS, lambda _number: 0),
    **dict.fromkeys(_TEXTS, len),
    memoryview: lambda view: int(view.nbytes),
}


def weigh(value: Any) -> int:
    """Return about how many bytes a payload holds; exact for buffers and for texts of ASCII, and never an error.

    Reads lengths only, so a large buffer costs as little as a small one, and a container that occurs twice counts once.
    An object of a foreign type counts by its ``nbytes`` where it has one. Nobody may change the value meanwhile.
    """
    kind = type(value)
    if kind is bytes or kind is str:
        return _FRAME + len(value)
    length = _LENGTHS.get(kind)
    return _FRAME + length(value) if length else _weigh_nested(value)


def _weigh_nested(value: Any) -> int:
    todo: list[Any] = []
    total = _FRAME + _weigh_one(value, todo)
    seen = {id(value)}
    while todo:
        item = todo.pop()
        if isinstance(item, _CONTAINERS):
            if id(item) in seen:
                continue
            seen.add(id(item))
        total += _weigh_one(item, todo)
    return total


def _weigh_one(item: Any, todo: list[Any]) -> int:
    """Return what an item holds beside its frame; what is nested in it, but for the frames, is added to ``todo``."""
    if isinstance(item, dict):
        return _weigh_row(item, todo) + _weigh_row(item.values(), todo)
    if isinstance(item, _CONTAINERS):
        return _weigh_row(item, todo)
    size = getattr(item, "nbytes", None)
    return size if isinstance(size, int) else sys.getsizeof(item, _FRAME)


def _weigh_row(row: Collection[Any], todo: list[Any]) -> int:
    """Weigh a row of items, of containers and foreign objects the frame only. Long rows of one kind are summed up."""
    total = _FRAME * len(row)
    if len(row) > _SHORT:
        kinds = set(map(type, row))
        if kinds <= _NUMBERS:
            return total
        if kinds <= _TEXTS:
            return total + sum(map(len, row))
    for item in row:
        kind = type(item)
        if kind in _TEXTS:
            total += len(item)
        elif kind not in _NUMBERS:
            length = _LENGTHS.get(kind)
            if length:
                total += length(item)
            else:
                todo.append(item)
    return total
