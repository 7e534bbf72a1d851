"""Makes what runs the stages of a configuration, here or for elsewhere, and the ends of their edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from stagewire import BuildContext, PluginError, Stage, StageContext, StageId, StagewireError, Transport, describe
from stagewire_orchestrator.config import OrchestratedStage, OrchestratorOptions
from stagewire_orchestrator.edges import Edge
from stagewire_orchestrator.graph import Graph, Node
from stagewire_orchestrator.kept import KeptEnd
from stagewire_orchestrator.links import InEnd, OnFailed, OutEnd
from stagewire_orchestrator.local_client import LocalClient
from stagewire_orchestrator.options import EdgeLimits
from stagewire_orchestrator.windows import Window

INPUT = "input"
"""What the edge over which a stream reaches an entry stage elsewhere is called at its beginning."""


class Wiring:
    """Makes clients. Opens nothing.

    Args:
        options: The sections of the file.
        context: What the App offers.
        scope: Whose edges they are, on a transport that others use as well; see `InEnd`.
    """

    def __init__(self, options: OrchestratorOptions, context: BuildContext, scope: str = "") -> None:
        self._options = options
        self._scope = f"{scope}." if scope else ""
        self._context = context
        self.graph = Graph(
            list(options.stages),
            options.graph_edges(),
            options.finals(),
            joins=options.joins(),
            routes=options.routes(),
        )

    def local_client(self, name: str, replica: int, transport: Transport | None) -> LocalClient:
        """Return the client of a replica in the orchestrator's own process."""
        return self._client(name, replica, transport, self._in_edges(name))

    def worker_client(self, name: StageId, replica: int, transport: Transport) -> LocalClient:
        """Return what hosts a replica in a worker's process; an entry gets streams over an edge of their own."""
        stage = str(name)
        edges = self._in_edges(stage)
        if self.graph.nodes[stage].entry:
            edges = [(input_edge(stage), EdgeLimits())]
        return self._client(stage, replica, transport, edges, elsewhere=True)

    def input_end(self, name: str, replica: int, transport: Transport, on_failed: OnFailed) -> OutEnd:
        """Return the end that sends streams to an entry stage elsewhere."""
        return self._out(input_edge(name), EdgeLimits(), replica, transport, on_failed, confirms=True)

    def _client(
        self,
        name: str,
        replica: int,
        transport: Transport | None,
        edges: Sequence[tuple[Edge, EdgeLimits]],
        *,
        elsewhere: bool = False,
    ) -> LocalClient:
        log = self._context.log.bind(stage=name, replica=replica)
        limits = self._options.limits
        return LocalClient(
            self._stage(name, self._options.stages[name]),
            self.graph.nodes[name],
            StageContext(stage=name, replica=replica, base=self._context.base, log=log),
            make_ins=partial(self._ins, edges, replica, transport),
            make_outs=lambda on_failed: self._outs(self.graph.nodes[name], transport, on_failed, confirms=elsewhere),
            make_window=lambda: Window(limits.queued_outputs, limits.queued_bytes),
            marks=elsewhere and self._options.resumable(name),
        )

    def _stage(self, name: str, block: OrchestratedStage) -> Stage:
        try:
            stage: Stage = block.provider.factory(block.options, self._context)
        except StagewireError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(f"stage {name!r} ({block.use}) cannot be made: {describe(error)}") from error
        return stage

    def _in_edges(self, name: str) -> list[tuple[Edge, EdgeLimits]]:
        return [(edge.edge(), edge) for edge in self._options.edges if edge.target == name and edge.kind == "chunk"]

    def _ins(self, edges: Sequence[tuple[Edge, EdgeLimits]], replica: int, transport: Transport | None) -> list[InEnd]:
        if transport is None:
            return []
        return [
            InEnd(edge, replica, transport, limits=limits, log=self._context.log, scope=self._scope)
            for edge, limits in edges
        ]

    def _outs(
        self, node: Node, transport: Transport | None, on_failed: OnFailed, *, confirms: bool
    ) -> Mapping[tuple[StageId, int], OutEnd]:
        blocks = [edge for edge in self._options.edges if edge.source == node.id and edge.kind == "chunk"]
        if transport is None:
            return {}
        return {
            (block.target, replica): self._out(block.edge(), block, replica, transport, on_failed, confirms=confirms)
            for block in blocks
            for replica in range(self._options.stages[block.target].replicas)
        }

    def _out(
        self,
        edge: Edge,
        limits: EdgeLimits,
        replica: int,
        transport: Transport,
        on_failed: OnFailed,
        *,
        confirms: bool = False,
    ) -> OutEnd:
        make = KeptEnd if self._options.resumable(str(edge.target)) else OutEnd
        return make(
            edge,
            replica,
            transport,
            limits=limits,
            on_failed=on_failed,
            log=self._context.log,
            scope=self._scope,
            confirms=confirms,
        )


def input_edge(entry: str) -> Edge:
    """Return the edge over which a stream reaches an entry stage elsewhere."""
    return Edge(INPUT, entry, "chunk")
