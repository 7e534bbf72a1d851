"""The metrics contract: numbers as plain data, so that whoever has them needs no metrics library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from stagewire.spec.transport import TRANSPORT_STATS


@dataclass(slots=True)
class Metric:
    """One metric and its values now.

    Attributes:
        name: Without the ``stagewire_`` that all begin with, and without the ``_total`` that counters end with.
        kind: A counter only grows, a gauge goes up and down.
        text: What it says, in one line.
        labels: The names of its labels, beside ``pipeline``, which all have.
        values: A value for each combination of the labels' values.
    """

    name: str
    kind: Literal["counter", "gauge"]
    text: str
    labels: Sequence[str] = ()
    values: dict[tuple[str, ...], float] = field(default_factory=dict)


@runtime_checkable
class Measured(Protocol):
    """What a pipeline may also have, to be seen by ``metrics:``."""

    def metrics(self) -> Iterable[Metric]:
        """Return the numbers as they are now. Called on the event loop; returns at once, changes nothing."""


def transport_metrics(stats: Mapping[str, Mapping[str, float]]) -> list[Metric]:
    """Return a transport's counters as metrics (TR-12); those beside `TRANSPORT_STATS` as one with a label."""
    known = {name: _of_edges(name) for name in TRANSPORT_STATS}
    other = Metric("transport_other", "gauge", "What the transport counts of its own.", ("edge", "name"))
    for edge, counters in stats.items():
        for name, value in counters.items():
            if name in known:
                known[name].values[edge,] = value
            else:
                other.values[edge, name] = value
    return [*known.values(), other]


def _of_edges(name: str) -> Metric:
    text = f"Per edge and mailbox: {name.replace('_', ' ')} (TR-12)."
    return Metric(f"transport_{name}", "gauge" if name == "outstanding" else "counter", text, ("edge",))
