"""The live state as metrics, read when they are scraped (CSP-16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import stagewire
from stagewire import Metric
from stagewire_csp.snapshot import PermitState, Snapshot

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

Values = dict[tuple[str, ...], float]

SIDE_EVENTS = ("produced", "consumed", "written_off", "expired")
REQUEST_EVENTS = ("sent", "answered", "failed", "given_up")
PERMITS = {"cap": "How many there are.", "held": "How many are out.", "waiting": "How many workers wait for one."}


def register_metrics(take: Callable[[], Snapshot], registry: CollectorRegistry, *, pipeline: str) -> Callable[[], None]:
    """Offer a run's state in a registry, each metric labelled with the pipeline; returns what takes it out again.

    For a run of one's own: under ``pipeline: csp`` the configuration's ``metrics:`` does it.

    Args:
        take: Takes a snapshot; ``runtime.snapshot``. Called in the thread that scrapes: it only reads numbers.
        registry: Where; a registry holds one csp pipeline of each name.
        pipeline: The pipeline's name.

    Raises:
        PluginError: prometheus-client is not installed.
    """
    return stagewire.register_metrics(lambda: metrics_of(take()), registry, pipeline=pipeline)


def metrics_of(state: Snapshot, lateness: float | None = None) -> Iterator[Metric]:
    """Yield the state as metrics.

    Args:
        state: The state.
        lateness: The most seconds by which the event loop was late, as the monitor last reported it.
    """
    yield from _permits(state)
    yield from _sides(state)
    yield from _totals(state)
    if lateness is not None:
        yield _one(
            "lateness_seconds", "The most by which the event loop was late in the monitor's last round.", lateness
        )


def _permits(state: Snapshot) -> Iterator[Metric]:
    permits: dict[str, PermitState] = {
        "t_slot": state.t.slots,
        "q_slot": state.q.slots,
        "physical": state.physical,
        "q_pending": state.q_pending,
    }
    for part, text in PERMITS.items():
        values: Values = {(name,): float(getattr(each, part)) for name, each in permits.items()}
        yield Metric(f"csp_permits_{part}", "gauge", f"Permits: {text}", ("capacity",), values)


def _sides(state: Snapshot) -> Iterator[Metric]:
    sides = {("t",): state.t, ("q",): state.q}
    gauges: dict[str, tuple[str, Values]] = {
        "stock_depth": ("How many lie in stock.", {name: float(side.depth) for name, side in sides.items()}),
        "stock_oldest_age_seconds": (
            "Age of the first in stock; 0 when there is none.",
            {name: side.age or 0.0 for name, side in sides.items()},
        ),
        "gate_open": ("Whether production may go on.", {name: float(side.gate_open) for name, side in sides.items()}),
        "gate_waiting": (
            "How many workers wait for the gate.",
            {name: float(side.gate_waiting) for name, side in sides.items()},
        ),
    }
    for name, (text, values) in gauges.items():
        yield Metric(f"csp_{name}", "gauge", text, ("side",), values)
    fates: Values = {
        (*name, event): float(getattr(side, event)) for name, side in sides.items() for event in SIDE_EVENTS
    }
    yield Metric("csp_resources", "counter", "Resources produced, and what became of them.", ("side", "event"), fates)


def _totals(state: Snapshot) -> Iterator[Metric]:
    yield _one("uptime_seconds", "Seconds since the run began.", state.uptime)
    yield _one("claims_waiting", "How many claims wait for a pair.", state.claims)
    yield _one("claims_oldest_age_seconds", "How long the first of them has waited.", state.claim_age or 0.0)
    yield _one("requests_in_flight", "External requests without an answer.", state.requests.in_flight)
    requests: Values = {(event,): float(getattr(state.requests, event)) for event in REQUEST_EVENTS}
    yield Metric("csp_requests", "counter", "External requests, and what became of them.", ("event",), requests)
    failures: Values = {(str(role),): float(count) for role, count in state.failures.items()}
    yield Metric("csp_role_failures", "counter", "How often a role has failed.", ("role",), failures)


def _one(name: str, text: str, value: float) -> Metric:
    return Metric(f"csp_{name}", "gauge", text, values={(): value})
