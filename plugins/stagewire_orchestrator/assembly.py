"""Builds an orchestrator whose stages run in this process, from a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagewire import BuildContext, PluginError, Stage, StageContext, StageId, StagewireError, Transport, describe
from stagewire_orchestrator.clients import StageClient, Submission
from stagewire_orchestrator.config import EdgeBlock, OrchestratedStage, OrchestratorOptions
from stagewire_orchestrator.graph import Graph, Node
from stagewire_orchestrator.links import InEnd, OnFailed, OutEnd
from stagewire_orchestrator.local_client import LocalClient
from stagewire_orchestrator.orchestrator import Orchestrator
from stagewire_orchestrator.windows import Window


def build(options: OrchestratorOptions, context: BuildContext) -> Orchestrator:
    """Build the orchestrator with everything that its stages need. Opens nothing."""
    graph = Graph(
        list(options.stages), options.graph_edges(), options.finals(), joins=options.joins(), routes=options.routes()
    )
    wiring = Wiring(options, context, graph)
    return Orchestrator(
        wiring.clients(),
        None,
        graph.finals,
        graph=graph,
        limits=options.limits,
        clocks=options.clocks,
        payload=whole,
        wire_id=numbered,
        log=context.log,
    )


def whole(submission: Submission) -> Submission:
    """Return what a stage in this process is given: all of it."""
    return submission


def numbered(request_id: str, number: int) -> str:
    """Return an id for one use, so that nothing of an earlier use of the same id can be taken for this one's."""
    return f"{request_id}#{number}"


@dataclass(frozen=True, slots=True)
class Wiring:
    """Makes the clients of a pipeline and the ends of their edges."""

    options: OrchestratorOptions
    context: BuildContext
    graph: Graph

    def clients(self) -> Mapping[StageId, list[StageClient]]:
        """Return a client for each replica of each stage."""
        transport = self.context.transport() if any(edge.kind == "chunk" for edge in self.options.edges) else None
        return {
            name: [self._client(name, replica, transport) for replica in range(block.replicas)]
            for name, block in self.options.stages.items()
        }

    def _client(self, name: str, replica: int, transport: Transport | None) -> LocalClient:
        block = self.options.stages[name]
        stage = self._stage(name, block)
        log = self.context.log.bind(stage=name, replica=replica)
        limits = self.options.limits
        return LocalClient(
            stage,
            self.graph.nodes[name],
            StageContext(stage=name, replica=replica, base=self.context.base, log=log),
            make_ins=lambda: self._ins(self.graph.nodes[name], replica, transport),
            make_outs=lambda on_failed: self._outs(self.graph.nodes[name], transport, on_failed),
            make_window=lambda: Window(limits.queued_outputs, limits.queued_bytes),
        )

    def _stage(self, name: str, block: OrchestratedStage) -> Stage:
        try:
            stage: Stage = block.provider.factory(block.options, self.context)
        except StagewireError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(f"stage {name!r} ({block.use}) cannot be made: {describe(error)}") from error
        return stage

    def _ins(self, node: Node, replica: int, transport: Transport | None) -> list[InEnd]:
        blocks = [edge for edge in self.options.edges if edge.target == node.id and edge.kind == "chunk"]
        if transport is None:
            return []
        return [InEnd(block.edge(), replica, transport, limits=block, log=self.context.log) for block in blocks]

    def _outs(self, node: Node, transport: Transport | None, on_failed: OnFailed) -> dict[tuple[StageId, int], OutEnd]:
        blocks = [edge for edge in self.options.edges if edge.source == node.id and edge.kind == "chunk"]
        if transport is None:
            return {}
        return {
            (block.target, replica): self._out(block, replica, transport, on_failed)
            for block in blocks
            for replica in range(self.options.stages[block.target].replicas)
        }

    def _out(self, block: EdgeBlock, replica: int, transport: Transport, on_failed: OnFailed) -> OutEnd:
        return OutEnd(block.edge(), replica, transport, limits=block, on_failed=on_failed, log=self.context.log)
