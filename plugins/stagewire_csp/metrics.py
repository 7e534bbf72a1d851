"""The live state as Prometheus metrics, read when they are scraped (CSP-16). Needs ``prometheus-client``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from stagewire import PluginError
from stagewire_csp.snapshot import PermitState, Snapshot

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

REMEDY = 'metrics need prometheus-client: pip install "stagewire[metrics]"'


def register_metrics(take: Callable[[], Snapshot], registry: CollectorRegistry, *, pipeline: str) -> Callable[[], None]:
    """Offer a run's state in a registry, each metric labelled with the pipeline; returns what takes it out again.

    Args:
        take: Takes a snapshot; ``runtime.snapshot``. Called in the thread that scrapes: it only reads numbers.
        registry: Where; a registry holds one csp pipeline of each name.
        pipeline: The pipeline's name.

    Raises:
        PluginError: prometheus-client is not installed.
    """
    try:
        from prometheus_client.registry import Collector  # noqa: PLC0415 — an optional install
    except ImportError as error:
        raise PluginError(REMEDY) from error

    class _State(Collector):
        def collect(self) -> Iterable[Metric]:
            return _families(take(), pipeline)

    collector = _State()
    registry.register(collector)
    return lambda: registry.unregister(collector)


def _families(state: Snapshot, pipeline: str) -> Iterator[Metric]:
    yield from _permits(state, pipeline)
    yield from _sides(state, pipeline)
    yield from _totals(state, pipeline)


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 — an optional install

    return GaugeMetricFamily(f"stagewire_csp_{name}", text, labels=("pipeline", *labels))


def _counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 — an optional install

    return CounterMetricFamily(f"stagewire_csp_{name}", text, labels=("pipeline", *labels))


def _permits(state: Snapshot, pipeline: str) -> Iterator[Metric]:
    permits: dict[str, PermitState] = {
        "t_slot": state.t.slots,
        "q_slot": state.q.slots,
        "physical": state.physical,
        "q_pending": state.q_pending,
    }
    texts = {"cap": "How many there are.", "held": "How many are out.", "waiting": "How many workers wait for one."}
    for part, text in texts.items():
        gauge = _gauge(f"permits_{part}", f"Permits: {text}", "capacity")
        for name, each in permits.items():
            gauge.add_metric((pipeline, name), getattr(each, part))
        yield gauge


def _sides(state: Snapshot, pipeline: str) -> Iterator[Metric]:
    depth = _gauge("stock_depth", "How many lie in stock.", "side")
    age = _gauge("stock_oldest_age_seconds", "Age of the first in stock; 0 when there is none.", "side")
    gate = _gauge("gate_open", "Whether production may go on.", "side")
    fates = _counter("resources", "Resources produced, and what became of them.", "side", "event")
    for name, side in (("t", state.t), ("q", state.q)):
        depth.add_metric((pipeline, name), side.depth)
        age.add_metric((pipeline, name), side.age or 0.0)
        gate.add_metric((pipeline, name), side.gate_open)
        for event in ("produced", "consumed", "written_off", "expired"):
            fates.add_metric((pipeline, name, event), getattr(side, event))
    yield from (depth, age, gate, fates)


def _totals(state: Snapshot, pipeline: str) -> Iterator[Metric]:
    uptime = _gauge("uptime_seconds", "Seconds since the run began.")
    uptime.add_metric((pipeline,), state.uptime)
    claims = _gauge("claims_waiting", "How many claims wait for a pair.")
    claims.add_metric((pipeline,), state.claims)
    requests = _counter("requests", "External requests, and what became of them.", "event")
    for event in ("sent", "answered", "failed", "given_up"):
        requests.add_metric((pipeline, event), getattr(state.requests, event))
    failures = _counter("role_failures", "How often a role has failed.", "role")
    for role, count in state.failures.items():
        failures.add_metric((pipeline, role), count)
    yield from (uptime, claims, requests, failures)
