"""What a pipeline sends over its transport."""

from __future__ import annotations

from stagewire import ChunkLink
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.traffic import traffic_of_edges


def test_each_chunk_edge_is_a_link_to_each_replica_of_its_target() -> None:
    options = OrchestratorOptions.model_validate(
        {
            "stages": {name: {"use": "x", "replicas": replicas} for name, replicas in (("a", 1), ("b", 2), ("c", 1))},
            "edges": [{"from": "a", "to": "b", "kind": "chunk"}, {"from": "b", "to": "c", "kind": "batch"}],
            "outputs": {"c": {"file": "c.txt"}},
        }
    )
    assert traffic_of_edges(options).links == [ChunkLink("a->b", "a", "b", 0), ChunkLink("a->b", "a", "b", 1)]
