from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

import stagewire.events
from stagewire import Event, emit
from stagewire.events import CATALOGUE, COMMON_FIELDS, UnknownEvent, event


@pytest.fixture
def production(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stagewire.events, "_strict", False)


@pytest.mark.parametrize("known", CATALOGUE.values(), ids=lambda known: known.name)
def test_an_event_is_well_formed(known: Event) -> None:
    assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", known.name), "dot-separated"
    assert known.level in {"debug", "info", "warning", "error"}
    assert known.summary.endswith(".")
    assert not known.fields & COMMON_FIELDS, "common fields need no mention"
    assert not known.fields & {"event", "level", "timestamp", "pipeline"}, "the line's own"
    assert CATALOGUE[known.name] is known


def test_emit_logs_at_the_level_of_the_catalogue(book: Any) -> None:
    emit(book.log, "stop.forced", signal="SIGTERM", deadline=30, waiting_for="tone", request_id="r1")
    assert book.last["level"] == CATALOGUE["stop.forced"].level == "error"
    assert book.last["event"] == "stop.forced"
    assert (book.last["request_id"], book.last["signal"], book.last["deadline"]) == ("r1", "SIGTERM", 30)


def test_under_test_an_unknown_event_raises(book: Any) -> None:
    with pytest.raises(UnknownEvent, match=r"'no.such' is not in stagewire\.events\.CATALOGUE"):
        emit(book.log, "no.such")
    assert not book.lines


def test_under_test_an_unknown_field_raises_and_names_the_known_ones(book: Any) -> None:
    with pytest.raises(UnknownEvent, match=r"'close.finished' has no field colour; its fields: attempt, owner"):
        emit(book.log, "close.finished", colour="red")


def test_under_test_a_filtered_event_is_checked_too(make_book: Any) -> None:
    with pytest.raises(UnknownEvent):
        emit(make_book(level="error").log, "close.finished", colour="red")


@pytest.mark.usefixtures("production")
def test_in_production_the_unknown_is_logged_as_it_is(book: Any) -> None:
    emit(book.log, "no.such", colour="red")
    emit(book.log, "close.finished", colour="red")
    assert [(line["event"], line["colour"]) for line in book.lines] == [("no.such", "red"), ("close.finished", "red")]


def test_outside_of_tests_it_is_production() -> None:
    code = "import stagewire.events as events; print(events._strict)"
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, text=True, check=True, env={}).stdout == "False\n"
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "True\n", "a child of a test"


def test_a_plugin_emits_events_of_its_own(book: Any) -> None:
    echoed = event("echo.said", "warning", "text", "The echo said something.")
    emit(book.log, echoed, text="hello")
    assert (book.last["event"], book.last["level"], book.last["text"]) == ("echo.said", "warning", "hello")
    with pytest.raises(UnknownEvent):
        emit(book.log, echoed, colour="red")


def test_a_field_may_be_named_as_a_parameter_is(book: Any) -> None:
    emit(book.log, event("echo.said", "info", "log what", "The echo said something."), log=1, what=2)
    assert (book.last["log"], book.last["what"]) == (1, 2)


@pytest.mark.usefixtures("production")
def test_a_filtered_event_renders_nothing(make_book: Any) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("rendered although nobody reads it")

    book = make_book(level="warning")
    emit(book.log, "close.finished", owner=Costly(), attempt=1)
    assert not book.text


def test_an_event_that_stands_twice_is_refused() -> None:
    twice = event("echo.said", "info", "", "The echo said something.")
    with pytest.raises(ValueError, match=r"'echo.said' stands twice"):
        stagewire.events._index((twice,), (twice,))
