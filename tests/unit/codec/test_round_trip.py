from __future__ import annotations

import struct
import subprocess
import sys
from collections import OrderedDict, namedtuple
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.codec import OUT_OF_BAND, decode, encode, join, size

LARGE = OUT_OF_BAND + 7

integers = st.integers(-(2**63), 2**64 - 1)
datetimes = st.datetimes(timezones=st.none() | st.just(UTC))
leaves = (
    st.none()
    | st.booleans()
    | integers
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.integers(0, 40).map(lambda more: bytes(OUT_OF_BAND + more))
    | st.binary().map(bytearray)
    | datetimes
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8) | integers, inner, max_size=5),
    max_leaves=12,
)


def both_ways(value: Any) -> list[Any]:
    parts = encode(value)
    return [decode(parts), decode(join(parts)), decode(bytearray(join(parts)))]


@given(values)
def test_values_and_their_types_survive(value: Any) -> None:
    for got in both_ways(value):
        assert got == value
        assert types_of(got) == types_of(value)


def types_of(value: Any) -> Any:
    if isinstance(value, list):
        return [types_of(item) for item in value]
    if isinstance(value, dict):
        return {key: types_of(item) for key, item in value.items()}
    return type(value)


@given(values)
def test_the_size_is_known_before_joining(value: Any) -> None:
    parts = encode(value)
    assert size(parts) == len(join(parts))


def test_nan_and_infinities_survive() -> None:
    got = decode(encode([float("nan"), float("inf"), float("-inf"), -0.0]))
    assert struct.pack("4d", *got) == struct.pack("4d", float("nan"), float("inf"), float("-inf"), -0.0)


@pytest.mark.parametrize("length", [0, 1, OUT_OF_BAND - 1, OUT_OF_BAND, LARGE])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_buffers_keep_their_type_on_both_sides_of_the_threshold(kind: Any, length: int) -> None:
    value = kind(bytes(range(256)) * (length // 256 + 1))[:length]
    for got in both_ways({"data": value}):
        assert type(got["data"]) is kind
        assert got["data"] == value


def test_a_memoryview_arrives_flat_and_read_only() -> None:
    numbers = memoryview(struct.pack("6i", *range(6))).cast("i", (2, 3))
    got = decode(encode(numbers))
    assert (got.format, got.ndim, got.readonly) == ("B", 1, True)
    assert got == numbers.cast("B")
    assert decode(encode(memoryview(bytearray(LARGE)))).readonly


def test_a_strided_memoryview_is_copied() -> None:
    data = bytes(range(256)) * 300
    assert decode(encode(memoryview(data)[::3])) == data[::3]
    assert decode(encode(memoryview(data)[:0])) == b""


def test_derived_types_arrive_as_their_base() -> None:
    class Number(IntEnum):
        ONE = 1

    class Word(StrEnum):
        HELLO = "hello"

    class Text(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "not this"

    point = namedtuple("point", "x y")  # noqa: PYI024 — the untyped kind travels too
    value = [Number.ONE, Word.HELLO, Text("text"), point(1, (2, 3)), OrderedDict(a=Number.ONE), np.float64(1.5)]
    got = decode(encode(value))
    assert got == [1, "hello", "text", [1, [2, 3]], {"a": 1}, 1.5]
    assert types_of(got) == [int, str, str, [int, [int, int]], {"a": int}, float]


@pytest.mark.parametrize(
    ("number", "plain"),
    [(np.int8(-3), -3), (np.uint64(2**64 - 1), 2**64 - 1), (np.float32(0.5), 0.5), (np.bool_(True), True)],
)
def test_numpy_numbers_arrive_as_python_numbers(number: Any, plain: Any) -> None:
    got = decode(encode({"n": number}))["n"]
    assert (got, type(got)) == (plain, type(plain))


def test_an_aware_datetime_keeps_its_instant_and_a_naive_one_its_face() -> None:
    abroad = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    naive = datetime(1, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001 — that is the point
    got = decode(encode([abroad, naive]))
    assert got == [abroad, naive]
    assert got[0].utcoffset() == timedelta(0)
    assert got[1].tzinfo is None


DTYPES = ["?", "i1", ">i2", "<u4", "u8", "f2", "f4", ">f8", "c8", "c16", "M8[ns]", "m8[us]", "S5"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (64, 200)])
def test_arrays_survive(dtype: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    array = np.arange(count).astype("i8").astype(dtype).reshape(shape)
    for got in both_ways({"a": array}):
        assert got["a"].dtype == array.dtype
        assert got["a"].shape == array.shape
        assert got["a"].tobytes() == array.tobytes()
        assert not got["a"].flags.writeable


def test_an_array_that_does_not_lie_in_order_is_copied() -> None:
    array = np.arange(40_000, dtype="i4").reshape(200, 200)
    for view in (array.T, array[::2, ::3], np.asfortranarray(array), array[::-1]):
        assert np.array_equal(decode(encode(view)), view)


def test_arrays_of_a_joined_payload_are_aligned() -> None:
    joined = join(encode([b"x" * (OUT_OF_BAND + 1), np.arange(10_000, dtype="f8"), np.arange(9_999, dtype="c16")]))
    for array in decode(joined)[1:]:
        assert array.flags.aligned


PROGRAM = """
import sys
from stagewire.codec import encode, decode, weigh
value = {"data": [1, "text", b"x" * 20000, {"a": None}], "finished": False}
assert decode(encode(value)) == value and weigh(value) > 20000
loaded = [name for name in ("numpy", "pickle", "cloudpickle", "dill") if name in sys.modules and name != "pickle"]
assert not loaded, loaded
"""


def test_numpy_is_not_imported_by_a_payload_without_arrays() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_numpy_is_imported_when_an_array_arrives() -> None:
    joined = join(encode(np.arange(3)))
    program = f"import sys; from stagewire.codec import decode; a = decode({joined!r}); assert a.tolist() == [0, 1, 2]"
    subprocess.run([sys.executable, "-c", program], check=True)
