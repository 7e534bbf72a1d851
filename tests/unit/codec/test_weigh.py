from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.codec import encode, size, weigh


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (None, 1, 20),
        ("a" * 1000, 1000, 1020),
        (b"a" * 1000, 1000, 1020),
        (bytearray(1000), 1000, 1020),
        (memoryview(bytes(1000)).cast("d"), 1000, 1020),
        (np.zeros(1000), 8000, 8020),
        (list(range(1000)), 4000, 20_000),
        (["a" * 100] * 1000, 100_000, 120_000),
        ({"key": {"inner": [b"x" * 5000, (1, 2)]}}, 5000, 5300),
        ({1, 2, 3}, 1, 100),
        (object(), 1, 100),
    ],
    ids=str,
)
def test_a_payload_weighs_about_what_it_holds(value: Any, least: int, most: int) -> None:
    assert least <= weigh(value) <= most


def test_what_occurs_twice_counts_once_and_a_ring_ends() -> None:
    inner = [b"x" * 1000]
    ring: list[Any] = [inner, inner]
    ring.append(ring)
    assert 1000 <= weigh(ring) < 1300


def test_a_large_buffer_costs_no_more_than_a_small_one() -> None:
    large, started = [bytes(64_000_000)], time.perf_counter()
    for _ in range(100):
        weigh(large)
    assert time.perf_counter() - started < 0.5


@given(
    st.recursive(
        st.integers(-(2**63), 2**63) | st.text(alphabet="abc") | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="abc", max_size=4), inner),
    )
)
def test_the_weight_is_not_below_the_encoded_size(value: Any) -> None:
    assert weigh(value) + 20 >= size(encode(value))


@given(st.lists(st.integers() | st.booleans() | st.text(alphabet="abc") | st.binary(), max_size=40))
def test_short_and_long_rows_weigh_what_their_items_do(row: list[Any]) -> None:
    frame = weigh([])
    assert weigh(row) == weigh(tuple(row)) == frame + sum(map(weigh, row))
    assert weigh(dict.fromkeys(row)) == frame + sum(weigh(key) + weigh(None) for key in dict.fromkeys(row))
    assert weigh([[item] for item in row]) == frame + sum(frame + weigh(item) for item in row)
