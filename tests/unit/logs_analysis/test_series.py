"""Counts over time stay bounded and merge exactly (LG-7)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from stagewire_logs.series import MAX_BUCKETS, Series

moments = st.lists(st.integers(0, 10**10) | st.integers(10**9, 10**9 + 1000), max_size=60)


def series_of(seconds: list[int]) -> Series:
    made = Series()
    for second in seconds:
        made.add(second)
    return made


@given(moments)
def test_lg7_the_span_has_a_bounded_number_of_buckets_and_nothing_is_lost(seconds: list[int]) -> None:
    made = series_of(seconds)
    counts = made.counts(made.width)
    assert counts == Counter(second // made.width * made.width for second in seconds)
    if seconds:
        assert (max(counts) - min(counts)) // made.width < MAX_BUCKETS


@given(moments, moments)
def test_lg7_merging_is_the_same_as_counting_together(left: list[int], right: list[int]) -> None:
    merged, whole = series_of(left), series_of(left + right)
    merged.merge(series_of(right))
    assert (merged.width, merged.counts(merged.width)) == (whole.width, whole.counts(whole.width))
