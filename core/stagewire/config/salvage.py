"""Saves what is valid of an options model at fault, so that one misspelt key does not hide a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from stagewire.config.faults import Fault
from stagewire.config.tree import Where

M = TypeVar("M", bound=BaseModel)

_NAMES_NOTHING = frozenset(
    {
        "bool_parsing",
        "bool_type",
        "float_parsing",
        "float_type",
        "greater_than",
        "greater_than_equal",
        "int_from_float",
        "int_parsing",
        "int_type",
        "less_than",
        "less_than_equal",
    }
)
"""Errors of values that refer to nothing: without them the rest can still be checked (see `salvage`)."""

_MOST_SALVAGED = 20


def salvage(model: type[M], data: dict[str, Any], faults: Sequence[Fault]) -> M | None:
    """Return the model without the values at fault, or ``None`` when too little remains.

    Only unknown keys, and numbers and truths that are none, are left out: without a name that something refers to, or
    with another choice than was meant, the checks would report faults that are not there.
    """
    if len(faults) > _MOST_SALVAGED:
        return None
    for fault in faults:
        if fault.on_key and fault.kind != "extra_forbidden":
            return None
        if not fault.on_key and any(error["type"] not in _NAMES_NOTHING for error in fault.errors):
            return None
        pruned = _without(data, fault.path)
        if pruned is None:
            return None
        data = pruned
    try:
        return model.model_validate(data)
    except Exception:  # noqa: BLE001 — what is wrong was reported; this is only an attempt
        return None


def _without(data: Any, path: Where) -> Any:
    """A copy without the key at ``path``; ``None`` when the path ends in a list."""
    if not path:
        return None
    part, *rest = path
    if isinstance(data, dict) and part in data:
        inner = _without(data[part], tuple(rest)) if rest else None
        if rest and inner is None:
            return None
        kept = {key: value for key, value in data.items() if key != part}
        return {**kept, part: inner} if rest else kept
    if isinstance(data, list) and isinstance(part, int) and rest and part < len(data):
        inner = _without(data[part], tuple(rest))
        return None if inner is None else [*data[:part], inner, *data[part + 1 :]]
    return None
