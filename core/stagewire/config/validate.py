"""Validates data against one options model, and reports what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from stagewire.config.faults import Fault, faults_of
from stagewire.config.findings import MOST_PROBLEMS, Findings
from stagewire.config.models import BlockNotes
from stagewire.config.redact import maskable, masked
from stagewire.config.shape import holds_secret, keys_at, secrets_in
from stagewire.config.tree import Where
from stagewire.config.wording import hint, is_worded, kind_of, own_words, requirement, shown, unknown_key
from stagewire.errors import bounded

M = TypeVar("M", bound=BaseModel)

_NAMES_NOTHING = frozenset(
    {
        "bool_parsing",
        "bool_type",
        "enum",
        "float_parsing",
        "float_type",
        "greater_than",
        "greater_than_equal",
        "int_from_float",
        "int_parsing",
        "int_type",
        "less_than",
        "less_than_equal",
        "literal_error",
    }
)
"""Errors of values that refer to nothing: without them the rest can still be checked (see `_salvage`)."""

_MOST_SALVAGED = 20


@dataclass(frozen=True, slots=True)
class Checked(Generic[M]):
    """What validating gave.

    Attributes:
        model: The validated options. When there were faults: what remains without the values at fault, for further
            checks only, or ``None`` when too little remains.
        notes: The blocks that were met, whether or not they and what is around them are valid.
    """

    model: M | None
    notes: BlockNotes = field(default_factory=BlockNotes)


def validate(
    model: type[M], data: dict[str, Any], at: Where, findings: Findings, *, also: Sequence[str] = ()
) -> Checked[M]:
    """Validate the data at ``at`` and report every fault. ``also`` names keys that are valid there beside the model's.

    An exception of a validator that is no `ValueError` is a fault of the plugin and reported as such.
    """
    findings.secrets |= secrets_in(model, data)
    notes = BlockNotes()
    try:
        return Checked(model.model_validate(data, context=notes), notes)
    except ValidationError as error:
        faults = faults_of(error, model, data)
    except Exception as error:  # noqa: BLE001 — a plugin's validator may raise anything
        findings.cause = findings.cause or error
        findings.value(at, f"cannot be validated: {model.__name__} {plugin_fault(error)}")
        return Checked(None, notes)
    for fault in faults[:MOST_PROBLEMS]:
        _report(fault, model, at, findings, also)
    findings.more(len(faults) - MOST_PROBLEMS)
    return Checked(_salvage(model, data, faults), notes)


def plugin_fault(error: Exception) -> str:
    """Return what to say of an exception that a plugin's code should not have raised."""
    return f"failed with {type(error).__name__}: {bounded(str(error), 200)}; this is a fault of the plugin"


def _report(fault: Fault, model: type[BaseModel], at: Where, findings: Findings, also: Sequence[str]) -> None:
    path = at + fault.path
    if fault.kind == "extra_forbidden":
        *_, name = fault.path
        known = keys_at(model, fault.path[:-1]) + (list(also) if len(fault.path) == 1 else [])
        findings.key(path, unknown_key(str(name), known))
    elif fault.kind == "missing":
        findings.value(path, "is required")
    elif fault.on_key:
        findings.key(path, "is no valid key here: " + _message(fault, shown(fault.value)))
    else:
        findings.value(path, _value_message(fault, model, path, findings))


def _value_message(fault: Fault, model: type[BaseModel], path: Where, findings: Findings) -> str:
    """A secret and what came from the environment are not shown, nor what a validator says of a secret."""
    if holds_secret(model, fault.path):
        worded = all(is_worded(error) for error in fault.errors)
        return requirement(fault.errors, kind_of(fault.value)) if worded else _SECRET
    if names := findings.document.env.get(path):
        message = _message(fault, f"the value of environment variable {', '.join(names)}", hints=False)
        return masked(message, maskable(fault.value))
    return _message(fault, shown(fault.value))


_SECRET = "is not valid; the value is a secret, so the reason is not shown"  # noqa: S105 — a message


def _message(fault: Fault, got: str, *, hints: bool = True) -> str:
    words = [text for error in fault.errors if (text := own_words(error)) is not None]
    if words:
        return words[0]
    return requirement(fault.errors, got) + (hint(fault.errors, fault.value) if hints else "")


def _salvage(model: type[M], data: dict[str, Any], faults: Sequence[Fault]) -> M | None:
    """Return the model without the values at fault, so that one misspelt key does not hide a cycle.

    Only unknown keys, and numbers and choices out of bounds are left out: without a text or a list that something else
    refers to, the checks would report faults that are not there.
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
