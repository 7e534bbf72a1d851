"""An orchestrator's counters and live sizes as metrics (OR-18)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stagewire import Metric, StageId
from stagewire_orchestrator.replicas import Replica
from stagewire_orchestrator.reports import Reports

Values = dict[tuple[str, ...], float]

STAGE_COUNTERS = ("submitted", "outputs", "ended")
"""What a replica counts; the rest of its numbers go up and down."""


def measure(reports: Reports, tables: Mapping[str, float], replicas: Iterable[Replica]) -> Iterator[Metric]:
    """Yield the counters of requests and batch edges, the size of every table, and what each replica did and holds."""
    yield from _requests(reports)
    sizes: Values = {(name,): size for name, size in tables.items()}
    yield Metric("orchestrator_table_size", "gauge", "Live size of each state table (OR-18).", ("table",), sizes)
    yield from _stages(list(replicas))


def _requests(reports: Reports) -> Iterator[Metric]:
    stats = reports.stats()
    events: Values = {(name,): count for name, count in stats["requests"].items()}
    yield Metric("orchestrator_requests", "counter", "Requests, and what became of them.", ("event",), events)
    for name in ("requests", "chunks"):
        values: Values = {(f"{source}->{target}",): counts[name] for (source, target), counts in reports.edges.items()}
        yield Metric(f"orchestrator_edge_{name}", "counter", f"Per batch edge: {name} forwarded.", ("edge",), values)


def _stages(replicas: list[Replica]) -> Iterator[Metric]:
    labels = ("stage", "replica")
    counts = Metric("orchestrator_stage_events", "counter", "What each replica took and gave.", (*labels, "event"))
    states = Metric("orchestrator_stage_state", "gauge", "Load of each replica; held back, lost.", (*labels, "state"))
    parts = Metric("orchestrator_stage_part", "gauge", "What a replica counts by itself.", (*labels, "part", "name"))
    for replica in replicas:
        where = _where(replica.stage, replica.number)
        for name, value in replica.stats().items():
            (counts if name in STAGE_COUNTERS else states).values[*where, name] = value
        for part, numbers in replica.client_stats().items():
            parts.values.update({(*where, part, name): value for name, value in numbers.items()})
    yield from (counts, states, parts)


def _where(stage: StageId, number: int) -> tuple[str, str]:
    return str(stage), str(number)
