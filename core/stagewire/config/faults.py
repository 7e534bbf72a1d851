"""Pydantic's errors brought back to the data: where each lies, and one fault per union instead of one per member."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stagewire.config.shape import keys_at
from stagewire.config.tree import Where

_ABSENT = ("missing", "extra_forbidden")
"""Errors whose last part is a key, whether or not the data has it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of the data.

    Attributes:
        path: Where, from the root of the validated data.
        errors: What pydantic said; several when each member of a union said something else about the same value.
        on_key: Whether it is the key that is wrong.
        member: The union in which it lies, and the member of it that says so.
    """

    path: Where
    errors: tuple[ErrorDetails, ...]
    on_key: bool = False
    member: tuple[Where, str] | None = None

    @property
    def kind(self) -> str:
        """Pydantic's name for the fault."""
        return self.errors[0]["type"]

    @property
    def value(self) -> Any:
        """The value at fault. May be a secret."""
        return self.errors[0]["input"]


def faults_of(error: ValidationError, annotation: Any, data: Any) -> list[Fault]:
    """Return the faults in pydantic's order. A union at fault says what any of its members would take, or, when the
    value was clearly meant for one member, only what is wrong for that one.
    """
    unions: dict[Where, list[Fault]] = defaultdict(list)
    result: list[Fault | Where] = []
    for details in error.errors(include_url=False):
        fault = _place(details, annotation, data)
        if fault.member is None:
            result.append(fault)
            continue
        if fault.member[0] not in unions:
            result.append(fault.member[0])
        unions[fault.member[0]].append(fault)
    return [fault for each in result for fault in ([each] if isinstance(each, Fault) else _choose(each, unions[each]))]


def _place(details: ErrorDetails, annotation: Any, data: Any) -> Fault:
    """Follow pydantic's location through the data; what leads nowhere is its name for the member of a union."""
    path: Where = ()
    member: tuple[Where, str] | None = None
    *_, last = details["loc"] or ("",)
    for number, part in enumerate(details["loc"], start=1):
        ends_in_key = number == len(details["loc"]) and details["type"] in _ABSENT
        if _leads_on(data, part):
            data = data[part]
        elif ends_in_key or part in keys_at(annotation, path):
            data = None
        else:
            member = member or (path, str(part))
            continue
        path = (*path, part)
    on_key = last == "[key]" or details["type"] == "extra_forbidden"
    return Fault(path, (details,), on_key, None if last == "[key]" else member)


def _leads_on(data: Any, part: str | int) -> bool:
    if isinstance(data, dict):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data)


def _choose(union: Where, faults: Sequence[Fault]) -> Iterable[Fault]:
    members: dict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        assert fault.member is not None
        members[fault.member[1]].append(fault)
    meant = [group for group in members.values() if any(fault.path != union for fault in group)]
    if meant:
        return min(meant, key=len)
    return [Fault(union, tuple(error for fault in faults for error in fault.errors))]
