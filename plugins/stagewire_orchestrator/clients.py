"""What the orchestrator asks of a stage client, and what it uses where a client offers more."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from stagewire import StageId
from stagewire_orchestrator.outputs import StageOutput

Doing = Literal["running", "starved", "blocked"]
"""What a stage does for a request: its own work, waiting for input, or waiting for room to put an output."""


@runtime_checkable
class StageClient(Protocol):
    """One replica of a stage, wherever it runs. Two methods are enough.

    Looked up by name and used where they are there:

    - ``async start()`` and ``async close()``, called by the orchestrator's own ``start`` and ``shutdown``;
    - ``async abort(request_id)``: let go of the request; returns when nothing of it is held any more (OR-12). It may be
      called for a request that this client never saw or has ended;
    - ``credit(request_id, count)``: so many outputs of the request were taken. A client that has it holds each request
      back by itself when too many are on their way (OR-16); without it a full request stops the reading of its replica;
    - ``doing(request_id)`` returns a `Doing`, so that a clock that runs out names the stage that is at fault (OR-17);
    - ``stats()`` returns counters by part, which the orchestrator's own ``stats`` passes on (OR-18);
    - ``ready()`` returns whether it takes a request at once; one that is not is only given requests when all are not;
    - ``moves(request_id)`` returns how many chunks of it came in or went out, for telling slow from standing still.
    """

    async def submit(self, request_id: str, payload: Any, /) -> object:
        """Take one request in. May wait, for room or for a connection; other replicas are not held up by that."""

    async def get_output(self) -> Sequence[StageOutput]:
        """Wait until there are outputs and return them, in order. Raising means that the replica is lost (OR-11)."""


ORCHESTRATOR: StageId = ""
"""Stands for the orchestrator among the successors of a stage, whose outputs it takes; no stage has this id."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a stage goes on with a request that another worker had before.

    Attributes:
        edge_wire: The request's id on the chunk edges of this stage, so that nothing of the other worker is taken.
        first_input: The number of the first input that comes.
        first_output: The number of the first output that is made of it.
        before: Their id there until now.
        have: How many outputs each successor has already, by its id; under `ORCHESTRATOR` how many that has.
    """

    edge_wire: str
    first_input: int
    first_output: int
    before: str
    have: Mapping[StageId, int]


@dataclass(frozen=True, slots=True)
class Submission:
    """What one stage is given of one request.

    Attributes:
        request_id: The id that the client gave.
        wire_id: The id of this one use of it; what ``submit`` gets and outputs must carry.
        stage: The stage.
        prompt: What the client gave to ``add_request``.
        inputs: What each upstream stage produced, for a stage behind batch edges, in the order of the edges.
        collected: The same as ``forward_fn`` gets it: a list behind one edge or a zip, else the mapping; empty behind
            chunk edges, and ``None`` for an entry.
        receivers: For each successor on a chunk edge, the number of the replica that takes this request.
        senders: For each predecessor on a chunk edge, the number of the replica that has this request.
        streamed: Whether the prompt's chunks come over a chunk edge of their own.
        resume: Where to go on, when another worker had the request before.
    """

    request_id: str
    wire_id: str
    stage: StageId
    prompt: Any
    inputs: Mapping[StageId, Sequence[Any]]
    collected: Any
    receivers: Mapping[StageId, int]
    senders: Mapping[StageId, int] = field(default_factory=dict)
    streamed: bool = False
    resume: Resume | None = None


ForwardFn = Callable[[Any, Any, Any], Any]
"""``forward_fn(next_stage, prompt, collected)`` makes the payload for the next stage; it may return an awaitable."""

PayloadFn = Callable[[Submission], Any]
"""Makes the payload of any submission, an entry's too; it may return an awaitable."""


async def call(method: Callable[..., Any] | None, *args: Any) -> Any:
    """Call an optional method, asynchronous or not; ``None`` without it."""
    if method is None:
        return None
    result: Awaitable[Any] | Any = method(*args)
    return await result if inspect.isawaitable(result) else result
