"""Makes what a stage's ``submit`` gets: by the source's rule from ``forward_fn``, or from whole submissions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stagewire import StageId
from stagewire_orchestrator.clients import ForwardFn, PayloadFn, Submission
from stagewire_orchestrator.graph import Node
from stagewire_orchestrator.ledger import RequestState, StageRun

Inputs = Mapping[StageId, Sequence[Any]]

Maker = Callable[[RequestState, StageRun, Inputs, Any], Any]
"""Makes the payload of one stage from what came over each edge and that as one; the latter is ``None`` for an entry."""


def from_forward_fn(forward_fn: ForwardFn) -> Maker:
    """Return the source's rule: an entry gets the prompt, every other stage what ``forward_fn`` returns."""

    def make(state: RequestState, run: StageRun, _inputs: Inputs, collected: Any) -> Any:
        return state.prompt if collected is None else forward_fn(run.node.id, state.prompt, collected)

    return make


def from_submissions(payload: PayloadFn) -> Maker:
    """Return the rule that makes the payload of every stage, an entry's too, from its `Submission`."""

    def make(state: RequestState, run: StageRun, inputs: Inputs, collected: Any) -> Any:
        prompt, receivers = state.prompt, _replicas(state, run.node.chunk_targets)
        senders = _replicas(state, run.node.sources) if run.node.chunked else {}
        return payload(Submission(state.id, state.wire, run.node.id, prompt, inputs, collected, receivers, senders))

    return make


def _replicas(state: RequestState, stages: Sequence[StageId]) -> dict[StageId, int]:
    replicas = {stage: state.runs[stage].replica for stage in stages if stage in state.runs}
    return {stage: replica.number for stage, replica in replicas.items() if replica is not None}


def collected(node: Node, inputs: Inputs) -> Any:
    """Return the inputs of a stage as one, as `Submission.collected` has them; the way back for what travelled."""
    if node.entry:
        return None
    if node.chunked:
        return ()
    if node.join == "zip" and len(node.sources) > 1:
        return list(zip(*inputs.values(), strict=True))
    return inputs if len(node.sources) > 1 else next(iter(inputs.values()), [])
