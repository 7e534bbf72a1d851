"""What cannot be encoded is named with its place and a remedy; what cannot be decoded raises CodecError only."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import pickle
import struct
import sys
import tracemalloc
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stagewire import CodecError
from stagewire.codec import MAX_DEPTH, OUT_OF_BAND, decode, encode, join
from stagewire.codec.extensions import Ext
from stagewire.codec.wire import MAGIC, VERSION, frame


@dataclasses.dataclass
class Record:
    name: str


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def ring() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "place", "remedy"),
    [
        ({"a": [1, {2, 3}]}, "payload.a[1]", "send a list"),
        ({"a": {"b": 2**64}}, "payload.a.b", "as text"),
        ([1, -(2**63) - 1], "payload[1]", "as text"),
        ({"t": "\ud800"}, "payload.t", "surrogate"),
        ({"\ud800": 1}, "payload", "surrogate"),
        ({(1, 2): 3}, "payload", "keys are str or int"),
        ({"a": {True: 1}}, "payload.a", "keys are str or int"),
        ({"a": {None: 1}}, "payload.a", "keys are str or int"),
        ({2**64: 1}, "payload", "as text"),
        ([Decimal(1)], "payload[0]", "its text"),
        ([UUID(int=1)], "payload[0]", "its text"),
        ([Path("a")], "payload[0]", "its text"),
        ([date(2024, 1, 1)], "payload[0]", "datetime"),
        ([timedelta(1)], "payload[0]", "total_seconds"),
        ([1j], "payload[0]", "two parts"),
        ([Record("x")], "payload[0]", "asdict"),
        ([object()], "payload[0]", "does not travel"),
        ([np.array([object()])], "payload[0]", "numbers, times or bytes"),
        ([np.array(["text"])], "payload[0]", "numbers, times or bytes"),
        ([np.zeros(2, dtype="i4,f8")], "payload[0]", "numbers, times or bytes"),
        ([np.ma.array([1])], "payload[0]", "does not travel"),
        ([np.longdouble(1)], "payload[0]", "does not travel"),
        ([np.datetime64("2024")], "payload[0]", "does not travel"),
        (nested(MAX_DEPTH + 1), "payload[0][0]", "nest more than"),
        (ring(), "payload[0][0]", "hold itself"),
        ({"a": nested(10_000)}, "payload.a[0]", "nest more than"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else type(value).__name__,
)
def test_an_error_names_the_place_and_the_remedy(value: Any, place: str, remedy: str) -> None:
    with pytest.raises(CodecError) as caught:
        encode(value)
    assert f"{place}" in str(caught.value)
    assert remedy in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_deepest_value_that_encodes_decodes() -> None:
    value = nested(MAX_DEPTH)
    assert decode(join(encode(value))) == value


@pytest.fixture
def small_stack() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(context=0)) + 80)
    yield
    sys.setrecursionlimit(limit)


def test_a_full_stack_is_a_codec_error(request: pytest.FixtureRequest) -> None:
    value = nested(MAX_DEPTH)
    joined = join(encode(value))
    request.getfixturevalue("small_stack")
    outcomes: list[Exception] = []
    for act in (lambda: decode(joined), lambda: encode(value)):
        try:
            act()
        except Exception as error:  # pytest.raises needs more of the stack than there is
            outcomes.append(error)
    assert [type(error) for error in outcomes] == [CodecError, CodecError]


def payload(body: bytes, *buffers: bytes) -> bytes:
    return join(frame(body, buffers))


def packed(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def ext(code: int, content: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(int(code), packed(content))


BUFFER = bytes(OUT_OF_BAND)
HOSTILE = {
    "nothing": b"",
    "garbage": b"garbage that is long enough to be a header",
    "bare msgpack": packed({"a": 1}),
    "a pickle": pickle.dumps({"a": 1}),
    "a newer version": MAGIC + bytes([VERSION + 1]) + bytes(8) + b"\xc0",
    "a body that is not there": MAGIC + struct.pack("<BII", VERSION, 2**32 - 1, 0) + b"\xc0",
    "buffers that are not there": MAGIC + struct.pack("<BII", VERSION, 1, 2**32 - 1) + b"\xc0",
    "a buffer longer than everything": MAGIC + struct.pack("<BIIQ", VERSION, 1, 1, 2**64 - 1) + b"\xc0",
    "something after it": payload(b"\xc0") + b"\x00",
    "an array longer than the body": payload(b"\xdd\xff\xff\xff\xff"),
    "a map longer than the body": payload(b"\xdf\xff\xff\xff\xff"),
    "a text longer than the body": payload(b"\xdb\xff\xff\xff\xffabc"),
    "many arrays longer than the body": payload(b"\xdc\xff\xff" * 5000),
    "a deep nest": payload(b"\x91" * (MAX_DEPTH + 1) + b"\xc0"),
    "a nest too deep for the parser": payload(b"\x91" * 200_000 + b"\xc0"),
    "two values": payload(b"\xc0\xc0"),
    "no value": payload(b""),
    "a reserved byte": payload(b"\xc1"),
    "bad UTF-8": payload(b"\xa2\xff\xfe"),
    "a list as a key": payload(b"\x81\x91\x01\x02"),
    "a map as a key": payload(b"\x81\x81\x01\x02\x03"),
    "a float as a key": payload(packed({1.5: 2})),
    "none as a key": payload(packed({None: 2})),
    "a bytearray as a key": payload(b"\x81" + packed(ext(Ext.BYTEARRAY, b"x")) + b"\x01"),
    "an unknown extension": payload(packed(ext(99, b"x"))),
    "an extension without content": payload(packed(msgspec.msgpack.Ext(int(Ext.BYTES), b""))),
    "a buffer that nobody names": payload(b"\xc0", BUFFER),
    "a buffer named twice": payload(packed([ext(Ext.BYTES, 0), ext(Ext.BYTES, 0)]), BUFFER),
    "a buffer that does not exist": payload(packed([ext(Ext.BYTES, 0), ext(Ext.BYTES, 1)]), BUFFER),
    "a negative buffer": payload(packed(ext(Ext.BYTES, -1)), BUFFER),
    "a true buffer": payload(packed(ext(Ext.BYTES, True)), BUFFER),
    "a text as a buffer": payload(packed(ext(Ext.BYTEARRAY, "0")), BUFFER),
    "an array of objects": payload(packed(ext(Ext.ARRAY, ["|O", [1], b"12345678"]))),
    "an array of records": payload(packed(ext(Ext.ARRAY, ["i4,O", [1], b"123456789012"]))),
    "an array of void": payload(packed(ext(Ext.ARRAY, ["|V8", [1], b"12345678"]))),
    "an array of an unknown dtype": payload(packed(ext(Ext.ARRAY, ["<f7", [1], b"1234567"]))),
    "an array of nothing": payload(packed(ext(Ext.ARRAY, ["|S0", [10**9], b""]))),
    "an array with a dtype that is no text": payload(packed(ext(Ext.ARRAY, [8, [1], b"12345678"]))),
    "an array longer than its buffer": payload(packed(ext(Ext.ARRAY, ["<f8", [2], b"12345678"]))),
    "an array shorter than its buffer": payload(packed(ext(Ext.ARRAY, ["<f8", [1], b"1234567890123456"]))),
    "an array of a huge shape": payload(packed(ext(Ext.ARRAY, ["<f8", [2**62, 2**62, 0], b""]))),
    "an array that overflows": payload(packed(ext(Ext.ARRAY, ["<f8", [2**61], b""]))),
    "an array of a negative shape": payload(packed(ext(Ext.ARRAY, ["<f8", [-1, -1], b"12345678"]))),
    "an array of a fractional shape": payload(packed(ext(Ext.ARRAY, ["<f8", [1.0], b"12345678"]))),
    "an array of a true shape": payload(packed(ext(Ext.ARRAY, ["<f8", [True], b"12345678"]))),
    "an array of 100 dimensions": payload(packed(ext(Ext.ARRAY, ["<f8", [1] * 100, b"12345678"]))),
    "an array without a shape": payload(packed(ext(Ext.ARRAY, ["<f8", b"12345678"]))),
    "an array that is a map": payload(packed(ext(Ext.ARRAY, {"dtype": "<f8"}))),
    "a datetime that is none": payload(packed(ext(Ext.NAIVE_DATETIME, "yesterday"))),
    "a datetime that is a number": payload(packed(ext(Ext.NAIVE_DATETIME, 5))),
    "a naive datetime with a zone": payload(packed(ext(Ext.NAIVE_DATETIME, "2024-01-01T00:00:00+01:00"))),
    "a timestamp out of range": payload(b"\xc7\x0c\xff" + struct.pack(">Iq", 2**32 - 1, 2**62)),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_input_is_a_codec_error(data: bytes) -> None:
    with pytest.raises(CodecError) as caught:
        decode(data)
    assert len(str(caught.value)) > 20


@pytest.mark.parametrize("name", ["an array longer than the body", "many arrays longer than the body", "a deep nest"])
def test_declared_lengths_allocate_nothing(name: str) -> None:
    tracemalloc.start()
    with pytest.raises(CodecError):
        decode(HOSTILE[name])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


GOOD = join(
    encode({"a": [1, "text", 2.5, None, bytearray(b"ba"), memoryview(b"mv")], 7: BUFFER, "n": np.arange(5), "l": [[]]})
)


def test_every_truncation_is_found() -> None:
    for length in [*range(300), len(GOOD) - 1]:
        with pytest.raises(CodecError):
            decode(GOOD[:length])


@given(st.binary(max_size=200))
@example(b"")
def test_garbage_raises_codec_errors_only(data: bytes) -> None:
    for candidate in (data, MAGIC + data, payload(data), payload(data, BUFFER)):
        decodes_or_codec_error(candidate)


@given(st.integers(0, 250), st.integers(0, 255), st.integers(0, 250), st.integers(0, 255))
def test_flipped_bytes_raise_codec_errors_only(first: int, one: int, second: int, other: int) -> None:
    data = bytearray(GOOD)
    data[first], data[second] = one, other
    decodes_or_codec_error(bytes(data))


@given(
    st.lists(
        st.sampled_from([MAGIC, b"\x01", b"\x91", b"\x81", b"\xc7\x02\x04", b"\xd4\x01\x00", b"\xc4\x00", b"\xc0"])
    )
)
def test_fragments_raise_codec_errors_only(fragments: list[bytes]) -> None:
    decodes_or_codec_error(payload(b"".join(fragments), BUFFER))


def decodes_or_codec_error(data: bytes) -> None:
    with contextlib.suppress(CodecError):
        decode(data)


@pytest.mark.parametrize("change", ["missing", "extra", "swapped", "short", "none"])
def test_parts_that_are_not_those_declared_are_refused(change: str) -> None:
    parts = encode([bytes(OUT_OF_BAND), bytes(OUT_OF_BAND + 1)])
    wrong = {
        "missing": parts[:-1],
        "extra": [*parts, b"x"],
        "swapped": [parts[0], parts[2], parts[1]],
        "short": [parts[0][:-1], *parts[1:]],
        "none": [],
    }[change]
    with pytest.raises(CodecError):
        decode(wrong)


def test_no_payload_runs_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("pickle was used")

    for name in ("loads", "load", "dumps", "dump", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    got = decode(join(encode({"a": np.arange(10_000), "b": [bytes(OUT_OF_BAND)]})))
    assert np.array_equal(got["a"], np.arange(10_000))


def test_an_array_without_numpy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = join(encode(np.arange(3)))
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(CodecError, match="pip install numpy"):
        decode(joined)
