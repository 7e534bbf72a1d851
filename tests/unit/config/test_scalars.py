"""Plain scalars follow the YAML 1.2 core schema."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.config.scalars import as_tagged, resolve

CORE = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "nULL": "nULL",
    "true": True,
    "FALSE": False,
    "yes": "yes",
    "on": "on",
    "0": 0,
    "-12": -12,
    "+3": 3,
    "007": 7,
    "0o17": 15,
    "0x1F": 31,
    "0b1": "0b1",
    "1_000": "1_000",
    "12:30": "12:30",
    "2024-01-01": "2024-01-01",
    ".5": 0.5,
    "1.": 1.0,
    "1e3": 1000.0,
    "-.inf": -math.inf,
    "1.2.3": "1.2.3",
    ".": ".",
    "١": "١",
    "9" * 201: "9" * 201,
}


@pytest.mark.parametrize("text", CORE)
def test_plain_scalars_have_the_value_of_the_core_schema(text: str) -> None:
    value = resolve(text)
    assert value == CORE[text]
    assert type(value) is type(CORE[text])


def test_nan_is_a_number() -> None:
    assert math.isnan(float(str(resolve(".nan"))))


@given(st.integers(-(10**30), 10**30))
def test_integers_come_back(number: int) -> None:
    assert resolve(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back(number: float) -> None:
    assert resolve(repr(number)) == number


@given(st.text())
def test_any_text_has_a_value(text: str) -> None:
    resolve(text)


@pytest.mark.parametrize(
    ("text", "tag", "value"),
    [("1", "str", "1"), ("1", "float", 1.0), ("1", "int", 1), ("", "null", None), ("true", "bool", True)],
)
def test_a_tag_chooses_the_type(text: str, tag: str, value: object) -> None:
    assert as_tagged(text, tag) == value
    assert type(as_tagged(text, tag)) is type(value)


@pytest.mark.parametrize(("text", "tag"), [("x", "int"), ("1.5", "int"), ("1", "bool"), ("x", "null"), ("x", "float")])
def test_a_tag_that_does_not_fit_is_an_error(text: str, tag: str) -> None:
    with pytest.raises(ValueError, match=text):
        as_tagged(text, tag)
