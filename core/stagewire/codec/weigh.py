"""How much a payload weighs, without encoding it: what in-process queues count against their byte bounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any

_FRAME = 16
"""What a number, a date or the frame of a container counts for: about what it costs in memory beside its content."""

_NUMBERS = frozenset({type(None), bool, int, float})

_LENGTHS: dict[type, Callable[[Any], int]] = {
    **dict.fromkeys(_NUMBERS, lambda _number: 0),
    str: len,
    bytes: len,
    bytearray: len,
    memoryview: lambda view: int(view.nbytes),
}


def weigh(value: Any) -> int:
    """Return about how many bytes a payload holds; exact for buffers and for texts of ASCII, and never an error.

    Reads lengths only, so a large buffer costs as little as a small one, and a container that occurs twice counts once.
    An object of a foreign type counts by its ``nbytes`` where it has one. Nobody may change the value meanwhile.
    """
    length = _LENGTHS.get(type(value))
    return _FRAME + length(value) if length else _weigh_nested(value)


def _weigh_nested(value: Any) -> int:
    total = 0
    todo, seen = [value], set()
    while todo:
        item = todo.pop()
        length = _LENGTHS.get(type(item))
        total += _FRAME
        if length is not None:
            total += length(item)
        elif isinstance(item, dict | list | tuple | set | frozenset):
            if id(item) not in seen:
                seen.add(id(item))
                total += _open(item, todo)
        else:
            total += _foreign(item)
    return total


def _open(container: Collection[Any], todo: list[Any]) -> int:
    """Weigh the items of one container, or queue them. Long rows of numbers or texts are summed up at once."""
    total = 0
    rows = (container.keys(), container.values()) if isinstance(container, dict) else (container,)
    for row in rows:
        kinds = set(map(type, row))
        if kinds <= _NUMBERS:
            total += _FRAME * len(row)
        elif kinds in ({str}, {bytes}):
            total += _FRAME * len(row) + sum(map(len, row))
        else:
            todo.extend(row)
    return total


def _foreign(item: Any) -> int:
    size = getattr(item, "nbytes", None)
    return size if isinstance(size, int) else sys.getsizeof(item, _FRAME)
