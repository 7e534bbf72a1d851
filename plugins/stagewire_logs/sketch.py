"""Percentiles of any number of values in bounded memory, with a stated error, that merge without loss (DDSketch).

Values fall into buckets whose bounds grow by a constant factor, so a quantile is off by at most ``ERROR`` of itself,
however the values are distributed, and merging two sketches is adding their counts: the result does not depend on how
the values were split. (Masson, Rim, Lee: DDSketch, VLDB 2019.)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

ERROR = 0.01
"""The relative error of every quantile."""

MAX_BUCKETS = 2048
"""Buckets of one sketch: twelve decades at the least, and beyond them the smallest values share one bucket."""

_GAMMA = (1 + ERROR) / (1 - ERROR)
_SCALE = 1 / math.log(_GAMMA)
_TINY = 1e-9
"""Values below a nanosecond count as zero."""


class Sketch:
    """A mergeable sketch of non-negative finite values; others are ignored. Not thread-safe.

    Attributes:
        count: How many values it has seen.
        total: Their sum.
        low: The least; infinity when there is none.
        high: The greatest; 0 when there is none.
    """

    __slots__ = ("_buckets", "_zeros", "count", "high", "low", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.low = math.inf
        self.high = 0.0
        self._zeros = 0
        self._buckets: Counter[int] = Counter()

    def extend(self, values: Iterable[float]) -> None:
        """Take values."""
        known = list(values)
        if known and not (min(known) > _TINY and max(known) < math.inf):
            known = self._without_zeros(known)
        if not known:
            return
        scale, ceil = _SCALE, math.ceil
        self._buckets.update([ceil(exponent * scale) for exponent in map(math.log, known)])
        self._note(len(known), math.fsum(known), min(known), max(known))
        self._shrink()

    def merge(self, other: Sketch) -> None:
        """Take what another sketch has seen."""
        self._buckets.update(other._buckets)
        self._zeros += other._zeros
        self._note(other.count, other.total, other.low, other.high)
        self._shrink()

    def quantile(self, share: float) -> float:
        """Return the value below which a share of 0 to 1 of the values lies, within ``ERROR``; 0 when there is none."""
        rank = share * (self.count - 1)
        seen = self._zeros
        if not self.count or rank < seen:
            return 0.0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen > rank:
                middle = 2 * _GAMMA**bucket / (_GAMMA + 1)
                return min(max(middle, self.low), self.high)
        return self.high

    def _without_zeros(self, values: list[float]) -> list[float]:
        zeros = [value for value in values if 0 <= value <= _TINY]
        if zeros:
            self._zeros += len(zeros)
            self._note(len(zeros), math.fsum(zeros), min(zeros), max(zeros))
        return [value for value in values if _TINY < value < math.inf]

    def _note(self, count: int, total: float, low: float, high: float) -> None:
        self.count += count
        self.total += total
        self.low = min(self.low, low)
        self.high = max(self.high, high)

    def _shrink(self) -> None:
        excess = len(self._buckets) - MAX_BUCKETS
        if excess <= 0:
            return
        first = sorted(self._buckets)[: excess + 1]
        self._buckets[first[-1]] = sum(self._buckets.pop(bucket) for bucket in first)
