"""Counts over time in bounded memory: when the span outgrows the buckets, they grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

MAX_BUCKETS = 240
"""Buckets of one series."""


class Series:
    """Counts per stretch of time; the stretch doubles as the span grows. Merges exactly. Not thread-safe.

    Attributes:
        width: Seconds of one bucket, a power of two.
    """

    __slots__ = ("_counts", "width")

    def __init__(self) -> None:
        self.width = 1
        self._counts: Counter[int] = Counter()

    def add(self, second: int, count: int = 1) -> None:
        """Count something at a whole second since 1970."""
        at = second // self.width
        known = at in self._counts
        self._counts[at] += count
        if not known:
            self._fit()

    def merge(self, other: Series) -> None:
        """Take the counts of another."""
        width = max(self.width, other.width)
        self._counts = _rebased(self.counts(width), width)
        self._counts.update(_rebased(other.counts(width), width))
        self.width = width
        self._fit()

    def counts(self, width: int) -> Mapping[int, int]:
        """Return the counts by the first second of each stretch of ``width``, a multiple of this one's."""
        found: Counter[int] = Counter()
        for bucket, count in self._counts.items():
            found[bucket * self.width // width * width] += count
        return found

    def _fit(self) -> None:
        """Widen the buckets until the whole span, its gaps included, has few enough."""
        if not self._counts:
            return
        first, last = min(self._counts), max(self._counts)
        width = self.width
        while last // (width // self.width) - first // (width // self.width) >= MAX_BUCKETS:
            width *= 2
        if width != self.width:
            self._counts = _rebased(self.counts(width), width)
            self.width = width


def _rebased(counts: Mapping[int, int], width: int) -> Counter[int]:
    return Counter({second // width: count for second, count in counts.items()})
