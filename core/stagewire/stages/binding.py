"""From what a person wrote, and its options, to a function of a request."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def process_of(made_of: Callable[..., Any]) -> Any:
    """Return the function that does the work: a class's ``process``, or the function itself."""
    return getattr(made_of, "process", None) if isinstance(made_of, type) else made_of


def bind(made_of: Callable[..., Any], options: Any) -> tuple[Callable[[Any], Any], object | None]:
    """Return a function of the request alone, and the object that it belongs to, if there is one."""
    if isinstance(made_of, type):
        target: Any = made_of(options) if _positional(made_of) else made_of()
        return target.process, target
    names = _positional(made_of)
    return (partial(made_of, **{names[1]: options}) if len(names) > 1 else made_of), None


def reference(made_of: Callable[..., Any]) -> str:
    """Return how another process imports it, ``module:name``.

    Raises:
        TypeError: It cannot: it is defined inside a function, or in the program that was started.
    """
    module, name = made_of.__module__, getattr(made_of, "__qualname__", "<unnamed>")
    if "<" in name or module == "__main__":
        raise TypeError(f"{module}.{name} cannot be imported by another process: define it at the top of a module")
    return f"{module}:{name}"


def resolve(where: str) -> Callable[..., Any]:
    """Import what `reference` named."""
    module, _, names = where.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    made_of: Callable[..., Any] = found
    return made_of


def _positional(made_of: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(made_of).parameters.values()
    return [each.name for each in parameters if each.kind in _POSITIONAL]
