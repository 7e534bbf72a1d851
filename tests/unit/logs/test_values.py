from __future__ import annotations

import array
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import types
import uuid
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagewire import ChunkKey
from stagewire.logs.values import MAX_ITEMS, MAX_TEXT


class Colour(enum.Enum):
    RED = 1


class Word(enum.StrEnum):
    YES = "yes"


def fail(text: str) -> None:
    raise ValueError(text)


@dataclasses.dataclass
class Point:
    x: int
    token: str


class Shape(msgspec.Struct):
    sides: int
    password: str


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (0.5, 0.5),
        ("text", "text"),
        ("näive ✓", "näive ✓"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (2**63, 2**63),
        (2**64, "<int of 65 bits>"),
        (np.int64(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), "True"),
        (decimal.Decimal("1.50"), "1.50"),
        (pathlib.PurePosixPath("/tmp/x"), "/tmp/x"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (Colour.RED, "Colour.RED"),
        (Word.YES, "yes"),
        (ChunkKey("r", "tone", 3), "r_tone_3"),
        ((1, 2), [1, 2]),
        (frozenset({1}), [1]),
        ({1: {"a": None}}, {"1": {"a": None}}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (Point(1, "hush"), {"x": 1, "token": "***"}),
        (Shape(4, "hush"), {"sides": 4, "password": "***"}),
        (ValueError("broken"), "ValueError: broken"),
        (b"123", "<bytes of 3 bytes>"),
        (bytearray(4), "<bytearray of 4 bytes>"),
        (memoryview(b"12345"), "<memoryview of 5 bytes>"),
        (array.array("h", [1, 2]), "<array of 4 bytes>"),
        (np.zeros((2, 3), dtype=np.int16), "<ndarray of 12 bytes>"),
        ({b"12": 1}, {"<bytes of 2 bytes>": 1}),
        (Unprintable(), "<Unprintable that cannot be shown: RuntimeError>"),
        ("\ud800", "\\ud800"),
        ({"\ud800": 1}, {"\\ud800": 1}),
    ],
)
def test_a_value_is_shown(book: Any, value: object, shown: object) -> None:
    book.log.info("app.started", value=value)
    assert book.last["value"] == shown


def test_a_number_too_long_to_be_written_is_shown_by_its_size(book: Any) -> None:
    book.log.info("app.started", value=10**5000)
    assert book.last["value"] == "<int of 16610 bits>"


def test_a_long_text_is_bounded_and_says_so(book: Any) -> None:
    book.log.info("app.started", value="x" * 1_000_000)
    assert len(book.last["value"]) == MAX_TEXT
    assert "more characters" in book.last["value"]


def test_a_long_collection_is_bounded_and_says_so(book: Any) -> None:
    book.log.info("app.started", items=list(range(1000)), mapping={str(number): number for number in range(1000)})
    assert book.last["items"][MAX_ITEMS:] == ["… 950 more"]
    assert book.last["mapping"]["…"] == "950 more"


def test_a_deep_or_endless_value_is_bounded(book: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    book.log.info("app.started", endless=endless)
    assert "…" in book.text


def test_a_bushy_value_is_bounded(book: Any) -> None:
    bushy: Any = 0
    for _ in range(6):
        bushy = [bushy] * 20
    book.log.info("app.started", request_id="r1", bushy=bushy)
    assert len(book.text) < 20_000
    assert book.last["request_id"] == "r1"


def test_a_mapping_that_changes_while_it_is_shown_breaks_nothing(book: Any) -> None:
    class Moving(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError("dictionary changed size during iteration")

    book.log.info("app.started", value=Moving(a=1))
    assert book.last["value"] == "<Moving that cannot be shown: RuntimeError>"


def test_an_exception_is_a_bounded_list_of_what_and_where(book: Any) -> None:
    def recurse(depth: int) -> None:
        if depth:
            recurse(depth - 1)
        raise ValueError("deep")

    try:
        try:
            recurse(200)
        except ValueError as error:
            raise OSError("outer") from error
    except OSError:
        book.log.exception("app.failed")
    outer, inner = book.last["exception"]
    assert (outer["exc_type"], outer["exc_value"]) == ("OSError", "outer")
    assert inner["is_cause"] is True
    assert len(inner["frames"]) < 30
    assert set(inner["frames"][0]) == {"filename", "lineno", "name"}


def test_a_long_chain_of_causes_is_bounded(book: Any) -> None:
    def chain(length: int) -> None:
        try:
            chain(length - 1) if length else fail("the first")
        except (ValueError, OSError) as error:
            raise OSError("again") from error

    try:
        chain(50)
    except OSError:
        book.log.exception("app.failed")
    assert len(book.last["exception"]) == 10


@pytest.mark.parametrize("how", ["exception", "instance", "triple", "true"])
def test_an_exception_may_be_given_in_each_usual_way(book: Any, how: str) -> None:
    try:
        fail("broken")
    except ValueError as error:
        given_as = {"instance": error, "triple": (ValueError, error, error.__traceback__), "true": True}
        book.log.exception("app.failed", **({"exc_info": given_as[how]} if how in given_as else {}))
    assert book.last["exception"][0]["exc_value"] == "broken"


def test_exc_info_without_an_exception_is_nothing(book: Any) -> None:
    for nothing in (True, (None, None, None), (), None, False):
        book.log.error("app.failed", exc_info=nothing)
    assert all("exception" not in line for line in book.lines)


JSON_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.binary(), inner) | st.tuples(inner),
    max_leaves=20,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(fields=st.dictionaries(st.text(), JSON_LIKE, max_size=5))
def test_whatever_is_logged_comes_out_as_one_json_line(make_book: Any, fields: dict[str, Any]) -> None:
    book = make_book()
    book.log.info("app.started", **{f"f{key}": value for key, value in fields.items()})
    assert len(book.lines) == 1
    assert book.last["event"] == "app.started"
