"""Builds an orchestrator from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stagewire import BuildContext, StageId
from stagewire_orchestrator.clients import StageClient, Submission
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.door import WireId
from stagewire_orchestrator.orchestrator import Orchestrator
from stagewire_orchestrator.wiring import Wiring


def build(options: OrchestratorOptions, context: BuildContext) -> Orchestrator:
    """Build the orchestrator with everything that its stages need. Opens nothing."""
    wiring = Wiring(options, context)
    graph = wiring.graph
    clients, wire_id = _clients(options, context, wiring)
    return Orchestrator(
        clients,
        None,
        graph.finals,
        graph=graph,
        limits=options.limits,
        clocks=options.clocks,
        payload=whole,
        wire_id=wire_id,
        log=context.log,
    )


def whole(submission: Submission) -> Submission:
    """Return what a stage in this process is given: all of it."""
    return submission


def numbered(request_id: str, number: int) -> str:
    """Return an id for one use, so that nothing of an earlier use of the same id can be taken for this one's."""
    return f"{request_id}#{number}"


def _clients(
    options: OrchestratorOptions, context: BuildContext, wiring: Wiring
) -> tuple[Mapping[StageId, list[StageClient]], WireId]:
    elsewhere = [name for name in options.stages if options.workers_of(name) != "in-process"]
    if not elsewhere:
        transport = context.transport() if any(edge.kind == "chunk" for edge in options.edges) else None
        return _each(options, lambda name, replica: wiring.local_client(name, replica, transport)), numbered
    from stagewire_orchestrator.remote.crew import crew  # noqa: PLC0415 — most pipelines have no stages elsewhere

    return crew(options, context, wiring)


def _each(options: OrchestratorOptions, make: Callable[[str, int], StageClient]) -> dict[StageId, list[StageClient]]:
    return {name: [make(name, replica) for replica in range(block.replicas)] for name, block in options.stages.items()}
