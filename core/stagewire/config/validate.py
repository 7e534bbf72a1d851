"""Validates data against one options model, and reports what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from stagewire.config.document import MOST_PROBLEMS
from stagewire.config.faults import Fault, faults_of
from stagewire.config.findings import Findings
from stagewire.config.models import BlockNotes
from stagewire.config.redact import maskable, masked
from stagewire.config.salvage import salvage
from stagewire.config.shape import holds_secret, is_secret, keys_at, secrets_in
from stagewire.config.tree import Where
from stagewire.config.wording import hint, is_worded, kind_of, own_words, requirement, shown, unknown_key
from stagewire.errors import bounded

M = TypeVar("M", bound=BaseModel)


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
        findings.value(at, f"cannot be validated: {model.__name__} {plugin_fault(error)}", foreign=True)
        return Checked(None, notes)
    for fault in faults[:MOST_PROBLEMS]:
        _report(fault, model, at, findings, also)
    findings.more(len(faults) - MOST_PROBLEMS)
    return Checked(salvage(model, data, faults), notes)


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
        foreign = any(own_words(error) is not None for error in fault.errors)
        findings.value(path, _value_message(fault, model, path, findings), foreign=foreign)


def _value_message(fault: Fault, model: type[BaseModel], path: Where, findings: Findings) -> str:
    """A secret and what came from the environment are not shown, nor what a validator says of a secret."""
    misplaced = not isinstance(fault.value, dict) and holds_secret(model, fault.path)
    if misplaced or is_secret(model, fault.path):
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
