"""What blocking code sees of a request, and what it may return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagewire.spec.stage import StageRequest
from stagewire.spec.transport import StageId


@dataclass(slots=True)
class BlockingRequest:
    """A `StageRequest` for plain functions and generators: ``chunks`` is an ordinary iterator there.

    Attributes:
        id: The request's id as the client gave it.
        prompt: What the client gave to ``add_request``.
        chunks: The chunks as they come, in order; taking the next one waits for it.
        inputs: All that upstream stages produced, behind ``batch`` edges.
        inputs_by_stage: The same per upstream stage.
    """

    id: str
    prompt: Any = None
    chunks: Iterator[Any] = field(default_factory=lambda: iter(()))
    inputs: Sequence[Any] = ()
    inputs_by_stage: Mapping[StageId, Sequence[Any]] = field(default_factory=dict)


BlockingCall = Callable[[BlockingRequest], Any]
"""A plain function of a request. What it returns is the output: see `outputs`."""


class StageStopped(BaseException):
    """Raised inside blocking code when nobody wants its output any more. Not to be caught."""


def blocking_request(request: StageRequest, chunks: Iterator[Any]) -> BlockingRequest:
    """Return the request as blocking code sees it."""
    return BlockingRequest(request.id, request.prompt, chunks, request.inputs, request.inputs_by_stage)


def outputs(result: Any) -> Iterator[Any]:
    """Return the chunks that a result stands for: those of an iterator, none for ``None``, else the result alone."""
    if isinstance(result, Iterator):
        return result
    return iter(()) if result is None else iter((result,))


def close(result: Any) -> None:
    """End a generator that is not used up, so that its ``finally`` runs here and now."""
    stop = getattr(result, "close", None)
    if isinstance(result, Iterator) and stop is not None:
        stop()
