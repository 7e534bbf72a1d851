"""The stage contract: what a person writes to take part in a pipeline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from stagewire.spec.transport import StageId

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


@dataclass(frozen=True, slots=True)
class StageContext:
    """What one replica of a stage is given when it opens.

    Attributes:
        stage: The stage's name in the pipeline.
        replica: Its number among the replicas of that stage, from 0.
        base: The directory that relative paths in the configuration refer to.
        log: A logger already bound to pipeline, stage and replica.
        input_directory: The directory that ``--input`` names. ``None``: it names none, or the pipeline hands it to no
            stage.
        output_directory: The directory for output files, which exists; for the stages of a pipeline that leaves the
            writing to them, such as the roles of ``csp``.
    """

    stage: StageId
    replica: int
    base: Path
    log: FilteringBoundLogger
    input_directory: Path | None = None
    output_directory: Path | None = None


async def _no_chunks() -> AsyncIterator[Any]:
    return
    yield  # makes this function a generator


@dataclass(slots=True)
class StageRequest:
    """One request as one stage sees it.

    Attributes:
        id: The request's id as the client gave it.
        prompt: What the client gave to ``add_request``.
        chunks: Upstream's chunks as they come, in order. For a stage with no upstream: the prompt's own chunks when the
            prompt is an (async) iterable that is neither text, bytes, list, tuple nor mapping; else the prompt alone.
            Behind batch edges: the items of ``inputs``. May be iterated once.
        inputs: All that upstream stages produced, for a stage behind ``batch`` edges; empty behind ``chunk`` edges.
        inputs_by_stage: The same per upstream stage.
    """

    id: str
    prompt: Any = None
    chunks: AsyncIterator[Any] = field(default_factory=_no_chunks)
    inputs: Sequence[Any] = ()
    inputs_by_stage: Mapping[StageId, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class To:
    """A chunk that is for one successor only: yield ``To("branch", chunk)`` in a stage whose route is ``named``."""

    stage: StageId
    chunk: Any


@runtime_checkable
class Stage(Protocol):
    """A stage: many requests may be in ``process`` at once, all on the event loop that opened it.

    An exception out of ``process`` fails that request only (OR-10). A cancel is delivered at an ``await`` or ``yield``.
    """

    async def open(self, context: StageContext) -> None:
        """Make ready; called once before the first request."""

    def process(self, request: StageRequest) -> AsyncIterator[Any]:
        """Yield the request's output chunks; an async generator. Yielding streams, returning ends."""

    async def close(self) -> None:
        """Let go of everything; called once, after the last request."""


class Producer(Protocol):
    """The S role of a CSP pipeline: local heavy work that makes a ``T``."""

    async def open(self, context: StageContext) -> None: ...

    async def produce(self) -> Any:
        """Make one ``T``. Raise `StopAsyncIteration` when there is no more to make."""

    async def close(self) -> None: ...


class Requester(Protocol):
    """The P role of a CSP pipeline: sends an external request and later receives its ``Q``."""

    async def open(self, context: StageContext) -> None: ...

    async def send(self) -> Any:
        """Send one request and return what identifies it (a ticket). Raise `StopAsyncIteration` when all were sent."""

    async def receive(self, ticket: Any) -> Any:
        """Wait for the answer to the ticket's request and return the ``Q``."""

    async def close(self) -> None: ...


class Consumer(Protocol):
    """The C role of a CSP pipeline: consumes one ``T`` together with one ``Q``."""

    async def open(self, context: StageContext) -> None: ...

    async def consume(self, t: Any, q: Any) -> None:
        """Use up the pair. Both are written off when this returns, raises or is cancelled."""

    async def close(self) -> None: ...
