"""Sketches as percentiles."""

from __future__ import annotations

from stagewire_logs.results import Percentiles
from stagewire_logs.sketch import Sketch


def percentiles(sketch: Sketch | None) -> Percentiles | None:
    """Return what a sketch knows; ``None`` when it has seen nothing."""
    if sketch is None or not sketch.count:
        return None
    p50, p90, p95, p99 = (sketch.quantile(share) for share in (0.5, 0.9, 0.95, 0.99))
    return Percentiles(sketch.count, round(sketch.total / sketch.count, 9), sketch.low, p50, p90, p95, p99, sketch.high)
