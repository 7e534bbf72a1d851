"""Which links the chunk edges of a pipeline are."""

from __future__ import annotations

from stagewire import ChunkLink, Traffic
from stagewire_orchestrator.config import OrchestratorOptions


def traffic_of_edges(options: OrchestratorOptions) -> Traffic:
    """Return a link for each chunk edge and each replica of its target."""
    return Traffic(
        [
            ChunkLink(edge.name, edge.source, edge.target, replica)
            for edge in options.graph_edges()
            if edge.kind == "chunk"
            for replica in range(options.stages[str(edge.target)].replicas)
        ]
    )
