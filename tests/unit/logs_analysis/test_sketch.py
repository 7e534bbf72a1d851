"""Percentiles come from a mergeable sketch with a stated error."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire_logs import sketch
from stagewire_logs.sketch import ERROR, Sketch

durations = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=300)
SHARES = (0.0, 0.5, 0.9, 0.99, 1.0)


def sketch_of(values: list[float]) -> Sketch:
    made = Sketch()
    made.extend(values)
    return made


@given(durations, st.sampled_from(SHARES))
def test_lg1_a_quantile_is_within_the_stated_error(values: list[float], share: float) -> None:
    true = sorted(values)[math.floor(share * (len(values) - 1))]
    assert sketch_of(values).quantile(share) == pytest.approx(true, rel=ERROR * 1.0001)


@given(durations, durations)
def test_lg1_merging_gives_what_one_sketch_of_all_would(left: list[float], right: list[float]) -> None:
    merged = sketch_of(left)
    merged.merge(sketch_of(right))
    whole = sketch_of(left + right)
    assert (merged.count, merged.low, merged.high) == (whole.count, whole.low, whole.high)
    assert merged.total == pytest.approx(whole.total)
    assert [merged.quantile(share) for share in SHARES] == [whole.quantile(share) for share in SHARES]


def test_lg1_zeros_count_and_what_is_no_duration_does_not() -> None:
    made = sketch_of([0.0, 0.0, 0.0, 5.0, -1.0, math.inf, math.nan])
    assert (made.count, made.quantile(0.5), made.high) == (4, 0.0, 5.0)


def test_lg7_a_sketch_stays_bounded_and_exact_at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch, "MAX_BUCKETS", 50)
    dice = random.Random(1)
    values = [10 ** dice.uniform(-6, 6) for _ in range(5000)]
    made = sketch_of(values)
    assert len(made._buckets) <= 50
    assert made.quantile(0.99) == pytest.approx(sorted(values)[math.floor(0.99 * 4999)], rel=ERROR * 1.0001)


def test_an_empty_sketch_has_no_quantile() -> None:
    assert Sketch().quantile(0.5) == 0.0
