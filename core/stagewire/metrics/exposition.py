"""From `Metric` to what prometheus-client collects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from stagewire.errors import PluginError
from stagewire.registry.extras import METRICS, remedy
from stagewire.spec.metrics import Metric

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


def register_metrics(
    take: Callable[[], Iterable[Metric]], registry: CollectorRegistry, *, pipeline: str
) -> Callable[[], None]:
    """Offer numbers in a registry, each labelled with the pipeline; returns what takes them out again.

    Args:
        take: Takes the numbers. Called in the thread that scrapes, for each scrape.
        registry: Where.
        pipeline: The pipeline's name.

    Raises:
        PluginError: prometheus-client is not installed.
    """
    try:
        from prometheus_client.registry import Collector  # noqa: PLC0415 — an optional install
    except ImportError as error:
        raise PluginError(f"metrics need prometheus-client: {remedy(METRICS)}") from error

    class _Numbers(Collector):
        def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
            return (_family(metric, pipeline) for metric in take())

    numbers = _Numbers()
    registry.register(numbers)
    return lambda: registry.unregister(numbers)


def _family(metric: Metric, pipeline: str) -> CounterMetricFamily | GaugeMetricFamily:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415 — an optional install

    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(f"stagewire_{metric.name}", metric.text, labels=("pipeline", *metric.labels))
    for labels, value in metric.values.items():
        family.add_metric((pipeline, *labels), value)
    return family
