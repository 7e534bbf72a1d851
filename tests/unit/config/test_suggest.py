"""Did-you-mean hints."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import did_you_mean

CHOICES = ["wpm", "volume", "shape", "Level"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("wpn", "; did you mean 'wpm'?"),
        ("VOLUME", "; did you mean 'volume'?"),
        ("level", "; did you mean 'Level'?"),
        ("colour", ""),
        ("", ""),
    ],
)
def test_the_closest_choice_is_named(name: str, hint: str) -> None:
    assert did_you_mean(name, CHOICES) == hint


def test_no_choice_no_hint() -> None:
    assert did_you_mean("x", []) == ""


def test_choices_may_be_any_iterable() -> None:
    assert did_you_mean("abc1", (name for name in ("abc2", "b"))) == "; did you mean 'abc2'?"


def test_long_names_and_many_choices_cost_little() -> None:
    began = time.perf_counter()
    did_you_mean("x" * 10_000_000, CHOICES)
    did_you_mean("x" * 100, ["x" * 99 + str(number) for number in range(1_000_000)])
    assert time.perf_counter() - began < 10


@given(st.text(), st.lists(st.text()))
def test_any_text_may_be_asked(name: str, choices: list[str]) -> None:
    hint = did_you_mean(name, choices)
    assert hint == "" or any(f"{choice!r}" in hint for choice in choices)
