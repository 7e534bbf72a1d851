"""The graph of a pipeline (OR-13): stages, the edges between them, how inputs join and outputs part."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stagewire import ConfigError, StageId
from stagewire_orchestrator.edges import Edge, Join, Route, ancestors, optional
from stagewire_orchestrator.faults import find_faults


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One stage, with what the orchestrator asks about it at each output.

    Attributes:
        id: The stage.
        final: Whether its outputs go to the client.
        needed: Whether a final stage depends on it, or it is one.
        sources: Where its inputs come from, in the order of the edges; empty for an entry.
        chunked: Whether its inputs come over chunk edges.
        join: How several inputs become one.
        batch_targets: The stages that start when this one has ended.
        chunk_targets: The stages that start together with this one.
        route: Chooses among the successors; ``None`` gives each output to all of them.
    """

    id: StageId
    final: bool
    needed: bool
    sources: tuple[StageId, ...]
    chunked: bool
    join: Join
    batch_targets: tuple[StageId, ...]
    chunk_targets: tuple[StageId, ...]
    route: Route | None

    @property
    def entry(self) -> bool:
        """Whether it takes the prompt."""
        return not self.sources


class Graph:
    """A checked graph. Immutable.

    ``nodes`` are the stages by id, ``entries`` those that take the prompt, and ``certain`` the ids of those that every
    request must pass to reach its end.

    Args:
        stages: Every stage.
        edges: The edges; a stage's inputs are joined in this order.
        finals: The stages whose outputs go to the client.
        joins: How the inputs of a stage with several are joined; default ``all``.
        routes: For a stage with several successors, how its outputs part; default: each gets every output.

    Raises:
        ConfigError: A name is unknown, an edge stands twice, there is a cycle, no final stage, or a bad join.
    """

    def __init__(
        self,
        stages: Iterable[StageId],
        edges: Iterable[Edge],
        finals: Collection[StageId],
        *,
        joins: Mapping[Any, Join] | None = None,
        routes: Mapping[Any, Route] | None = None,
    ) -> None:
        self.stages = tuple(stages)
        self.edges = tuple(edges)
        joins, routes = joins or {}, routes or {}
        faults = find_faults(self.stages, self.edges, finals, joins, routes)
        if faults:
            raise ConfigError(faults)
        self.finals = frozenset(finals)
        needed = ancestors(self.edges, self.finals)
        self.nodes = {stage: self._node(stage, needed, joins, routes) for stage in self.stages}
        self.entries = tuple(node for node in self.nodes.values() if node.entry)
        doubtful = {stage for fork in routes for stage in optional(self.edges, fork)}
        self.certain = tuple(stage for stage in self.stages if stage in needed and stage not in doubtful)

    def _node(
        self,
        stage: StageId,
        needed: Collection[StageId],
        joins: Mapping[StageId, Join],
        routes: Mapping[StageId, Route],
    ) -> Node:
        inputs = [edge for edge in self.edges if edge.target == stage]
        outputs = [edge for edge in self.edges if edge.source == stage]
        return Node(
            id=stage,
            final=stage in self.finals,
            needed=stage in needed,
            sources=tuple(edge.source for edge in inputs),
            chunked=any(edge.kind == "chunk" for edge in inputs),
            join=joins.get(stage, "all"),
            batch_targets=tuple(edge.target for edge in outputs if edge.kind == "batch"),
            chunk_targets=tuple(edge.target for edge in outputs if edge.kind == "chunk"),
            route=routes.get(stage),
        )


def line(stages: Sequence[StageId], finals: Collection[StageId]) -> Graph:
    """Return the graph of the source: the stages one behind the other, on batch edges."""
    return Graph(stages, [Edge(source, target) for source, target in pairwise(stages)], finals)
