"""``stage_provider``: a provider for a stage that is written as a function or as a class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from stagewire.spec.provider import BuildContext, Extra, Options, Provider
from stagewire.spec.stage import Stage
from stagewire.stages.binding import bind, process_of, reference
from stagewire.stages.processes import ProcessStage
from stagewire.stages.threads import ThreadStage
from stagewire.stages.wrapped import AsyncStage, InlineStage, is_async

if TYPE_CHECKING:
    from stagewire.errors import Problem
    from stagewire.registry import Catalog

Blocking = Literal["no", "thread", "process"]
"""Where plain code runs: on the event loop, on a thread for each request, or in a process for each replica."""

Check = Callable[[Any, "Catalog"], Iterable["Problem"]]


def stage_provider(
    name: str,
    made_of: Callable[..., Any],
    *,
    options: type[BaseModel] = Options,
    blocking: Blocking = "no",
    summary: str | None = None,
    capabilities: Iterable[str] = (),
    extra: Extra | None = None,
    check: Check | None = None,
) -> Provider[Stage]:
    """Return a provider for a stage that is written in a few lines.

    ``made_of`` is one of:

    - an async generator function ``(request)`` or ``(request, options)`` that yields chunks;
    - a coroutine function likewise; what it returns is the one chunk (``None``: no chunk);
    - a plain generator or function likewise, which gets a `BlockingRequest`, whose ``chunks`` is an ordinary iterator.
      With ``blocking="thread"`` each request runs on a thread, with ``"process"`` each replica in a process of its
      own; taking a chunk then waits for it. With ``"no"`` it runs on the event loop when all chunks have come, and
      must be quick;
    - a class, made with the options (or nothing), with a method ``process`` that is any of these, and ``open(context)``
      and ``close()`` where it needs them.

    Args:
        name: ``plugin.thing``, unique among the installed stages.
        made_of: See above.
        options: The pydantic model of its options.
        blocking: Where plain code runs.
        summary: One line for ``stagewire plugins``; by default the first line of the docstring.
        capabilities: As in `Provider`.
        extra: As in `Provider`.
        check: As in `Provider`.

    Raises:
        TypeError: It is none of these, or an asynchronous one is said to block.
    """
    _require(name, made_of, blocking)
    return Provider(
        name=name,
        summary=(inspect.getdoc(made_of) or name).partition("\n")[0] if summary is None else summary,
        factory=partial(_build, made_of, blocking),
        options=options,
        capabilities=frozenset(capabilities),
        extra=extra,
        check=check,
    )


def _build(made_of: Callable[..., Any], blocking: Blocking, options: Any, _context: BuildContext) -> Stage:
    if blocking == "process":
        return ProcessStage(made_of, options)
    process, target = bind(made_of, options)
    if is_async(process):
        return AsyncStage(process, target)
    return ThreadStage(process, target) if blocking == "thread" else InlineStage(process, target)


def _require(name: str, made_of: Callable[..., Any], blocking: Blocking) -> None:
    function = process_of(made_of)
    if not callable(function):
        raise TypeError(f"stage {name!r} cannot be made of {made_of!r}: give a function, or a class with process()")
    if blocking != "no" and is_async(function):
        raise TypeError(f"stage {name!r} is asynchronous and cannot run in a {blocking}: remove blocking={blocking!r}")
    if blocking == "process":
        reference(made_of)
