"""Large buffers are not copied where nothing forces it, and cost the same at any size."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stagewire.codec import OUT_OF_BAND, decode, encode, join

MIB = 1024 * 1024


def allocated(act: Callable[[], Any]) -> int:
    """The most bytes that were allocated at once while it ran."""
    tracemalloc.start()
    try:
        result = act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        del result


def test_a_small_payload_is_one_part() -> None:
    assert len(encode({"a": [1, 2], "b": bytes(OUT_OF_BAND - 1), "c": bytearray(5)})) == 1


def test_large_buffers_are_parts_by_reference() -> None:
    data, changing, array = bytes(MIB), bytearray(MIB), np.zeros(MIB, dtype="u1")
    parts = encode([data, {"b": changing}, array])
    assert len(parts) == 4
    assert parts[1] is data
    changing[0] = array[0] = 7
    assert bytes(parts[2][:1]) == bytes(parts[3][:1]) == b"\x07"
    assert len(parts[0]) < 200


@pytest.mark.parametrize("value", [bytes(32 * MIB), bytearray(32 * MIB), np.zeros(32 * MIB // 8)], ids=type)
def test_encoding_allocates_no_more_for_a_large_buffer(value: Any) -> None:
    assert allocated(lambda: encode({"data": value})) < 20_000


def test_bytes_given_in_parts_come_back_as_the_very_object() -> None:
    data = bytes(MIB)
    assert decode(encode([data]))[0] is data


def test_views_and_arrays_refer_to_what_was_received() -> None:
    joined = bytearray(join(encode([memoryview(bytes(MIB)), np.zeros(MIB, dtype="u1")])))
    view, array = decode(joined)
    joined[:] = b"\x05" * len(joined)
    assert view[MIB // 2] == array[MIB // 2] == 5
    assert view.readonly
    assert not array.flags.writeable


def test_with_views_nothing_is_copied() -> None:
    joined = join(encode([bytes(32 * MIB), bytearray(32 * MIB), b"small", bytearray(b"small")]))
    assert allocated(lambda: decode(joined, views=True)) < 20_000
    large, changing, small, small_changing = decode(joined, views=True)
    assert type(large) is type(changing) is memoryview
    assert large.readonly
    assert changing.readonly
    assert (small, small_changing) == (b"small", bytearray(b"small"))


def test_a_bytearray_is_the_readers_own() -> None:
    parts = encode([bytearray(MIB)])
    first, second = decode(parts)[0], decode(parts)[0]
    first[0] = 1
    assert second[0] == 0


def best(act: Callable[[], Any]) -> float:
    times = []
    for _ in range(30):
        started = time.perf_counter()
        act()
        times.append(time.perf_counter() - started)
    return min(times)


def test_cost_is_flat_in_size() -> None:
    small, large = {"data": bytes(64 * 1024)}, {"data": bytes(32 * MIB)}
    small_parts, large_parts = encode(small), encode(large)
    assert best(lambda: encode(large)) < 10 * best(lambda: encode(small)) + 1e-4
    assert best(lambda: decode(large_parts)) < 10 * best(lambda: decode(small_parts)) + 1e-4
