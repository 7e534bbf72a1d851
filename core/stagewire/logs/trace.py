"""An exception as data: a bounded list of what was raised and where, never with local variables."""

from __future__ import annotations

import sys
from typing import Any

MAX_STACKS = 10
"""Exceptions of one chain of causes."""

MAX_FRAMES = 20
"""Frames of one exception: the outermost and the innermost."""


def exception_of(exc_info: Any) -> BaseException | None:
    """Return the exception that ``exc_info`` means: itself, of a triple, or (``True``) the one being handled."""
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1] if len(exc_info) > 1 else None
    elif exc_info and not isinstance(exc_info, BaseException):
        exc_info = sys.exception()
    return exc_info if isinstance(exc_info, BaseException) else None


def stacks(error: BaseException) -> list[dict[str, Any]]:
    """Return the exception, then what it came from: ``exc_type``, ``exc_value``, ``frames``; empty parts left out."""
    from structlog.tracebacks import ExceptionDictTransformer  # noqa: PLC0415 — imports rich, which takes 0.2 s

    transform = ExceptionDictTransformer(show_locals=False, max_frames=MAX_FRAMES, use_rich=False)
    found = transform((type(error), error, error.__traceback__))
    return [_without_empty(stack) for stack in found[:MAX_STACKS]]


def readable(found: list[dict[str, Any]]) -> str:
    """Return the same as text for a person, the first cause first, as Python prints it."""
    return "\n".join(line for stack in reversed(found) for line in _lines(stack))


def _lines(stack: dict[str, Any]) -> list[str]:
    frames = [f"  {frame['filename']}:{frame['lineno']} in {frame['name']}" for frame in stack.get("frames", ())]
    inner = [f"  | {line}" for group in stack.get("exceptions", ()) for line in readable(group).splitlines()]
    return [*frames, f"{stack['exc_type']}: {stack['exc_value']}", *inner]


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each not in (None, [], {}, False)}
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    return value
