"""Builds an orchestrator from a configuration."""

from __future__ import annotations

from stagewire import BuildContext, StageId
from stagewire_orchestrator.clients import Submission
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.local_client import LocalClient
from stagewire_orchestrator.orchestrator import Orchestrator
from stagewire_orchestrator.remote.crew import Crew, mixed
from stagewire_orchestrator.wiring import Wiring


def build(options: OrchestratorOptions, context: BuildContext) -> Orchestrator:
    """Build the orchestrator with everything that its stages need. Opens nothing."""
    crew = mixed(options, context) if _elsewhere(options) else _here(options, context)
    graph = crew.graph
    orchestrator = Orchestrator(
        crew.clients,
        None,
        graph.finals,
        graph=graph,
        limits=options.limits,
        clocks=options.clocks,
        payload=whole,
        wire_id=crew.wire_id,
        log=context.log,
    )
    crew.watch(orchestrator.request_states)
    return orchestrator


def whole(submission: Submission) -> Submission:
    """Return what a stage in this process is given: all of it."""
    return submission


def numbered(request_id: str, number: int) -> str:
    """Return an id for one use, so that nothing of an earlier use of the same id can be taken for this one's."""
    return f"{request_id}#{number}"


def _elsewhere(options: OrchestratorOptions) -> bool:
    return any(options.workers_of(name) != "in-process" for name in options.stages)


def _here(options: OrchestratorOptions, context: BuildContext) -> Crew:
    wiring = Wiring(options, context)
    transport = context.transport() if any(edge.kind == "chunk" for edge in options.edges) else None
    clients: dict[StageId, list[LocalClient]] = {
        name: [wiring.local_client(name, replica, transport) for replica in range(block.replicas)]
        for name, block in options.stages.items()
    }
    return Crew(wiring.graph, clients, numbered)
