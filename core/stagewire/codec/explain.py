"""Says where in a value the thing is that cannot be encoded, and what to send instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

from stagewire.errors import CodecError, format_path

_Path = tuple[str | int, ...]

_REMEDIES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (int, "the int does not fit into 64 bits: send it as text"),
    (str, "the text holds a lone surrogate, which UTF-8 cannot carry: decode it with errors='replace'"),
    ((set, frozenset), "send a list"),
    ((date, time), "send a datetime, or its isoformat() text"),
    (timedelta, "send its total_seconds()"),
    ((Decimal, UUID, PurePath), "send its text"),
    (complex, "send a list of its two parts"),
)


def explain(value: Any, max_depth: int, check_leaf: Callable[[Any], None]) -> str:
    """Return ``path: reason`` for the first fault of the value; ``check_leaf`` raises on a leaf that is one."""
    todo: list[tuple[_Path, Any]] = [(("payload",), value)]
    while todo:
        path, item = todo.pop()
        reason = _fault(item, len(path), max_depth, check_leaf)
        if reason is not None:
            return f"{format_path(path[:10])}{'…' if len(path) > 10 else ''}: {reason}"  # noqa: PLR2004 — enough to find it
        todo.extend(reversed([((*path, key), inner) for key, inner in _items(item)]))
    return "payload: it changed while it was being encoded, or the call stack is full"


def _items(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)


def _fault(item: Any, depth: int, max_depth: int, check_leaf: Callable[[Any], None]) -> str | None:
    if isinstance(item, dict | list | tuple):
        if depth > max_depth:
            return (
                f"containers nest more than {max_depth} deep: flatten the payload, and see that it does not hold itself"
            )
        return _bad_key(item) if isinstance(item, dict) else None
    try:
        check_leaf(item)
    except (CodecError, OverflowError, ValueError, TypeError, BufferError) as error:
        return _remedy(item, error)
    return None


def _bad_key(mapping: dict[Any, Any]) -> str | None:
    for key in mapping:
        if type(key) not in (str, int):
            return f"the key {_short(key)} is of type {type(key).__name__}: keys are str or int"
        try:
            ("" if isinstance(key, int) else key).encode()
        except UnicodeEncodeError:
            return f"the key {_short(key)}: {_REMEDIES[1][1]}"
        if isinstance(key, int) and not -(2**63) <= key < 2**64:
            return f"the key {_short(key)}: {_REMEDIES[0][1]}"
    return None


def _remedy(item: Any, error: Exception) -> str:
    for kinds, remedy in _REMEDIES:
        if isinstance(item, kinds):
            return f"{type(item).__name__}: {remedy}"
    if dataclasses.is_dataclass(item):
        return f"{type(item).__name__}: send dataclasses.asdict() of it"
    if isinstance(error, CodecError) and hasattr(item, "dtype"):
        return f"{type(item).__name__}: {error}"
    return f"{type(item).__name__}: of a type that does not travel; send plain values, bytes, lists and dicts"


def _short(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 40 else text[:39] + "…"  # noqa: PLR2004 — a hint, not the key
