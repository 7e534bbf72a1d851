"""References to environment variables inside texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.config import Config, load_document
from stagewire.config.env import REFERENCE_PATTERN, Filler

Faults = Callable[..., list[str]]
HEAD = "version: 1\npipeline: flow\n"
ENVIRON = {"NAME": "north", "EMPTY": "", "YAML": "a: [1]", "WPM": "12", "DOLLAR": "${env:NAME}"}

FILLED = {
    "plain": "plain",
    "$5 {x} $": "$5 {x} $",
    "${env:NAME}": "north",
    "<${env:NAME}-${env:NAME}>": "<north-north>",
    "${env:NONE:-south}": "south",
    "${env:NONE:-}": "",
    "${env:NONE:-a:-b c}": "a:-b c",
    "${env:EMPTY}": "",
    "${env:EMPTY:-x}": "x",
    "${env:NAME:-x}": "north",
    "${env:YAML}": "a: [1]",
    "${env:DOLLAR}": "${env:NAME}",
    "$${env:NAME}": "${env:NAME}",
    "$$${env:NAME}": "$${env:NAME}",
    "$${": "${",
}


@pytest.mark.parametrize("text", FILLED)
def test_references_are_filled_in_once(text: str) -> None:
    filled = Filler(ENVIRON).fill(text)
    assert (filled.text, filled.faults) == (FILLED[text], [])


BAD = {
    "${env:NONE}": "environment variable 'NONE' is not set; set it, or write ${env:NAME:-default}",
    "${env:WPN}": "environment variable 'WPN' is not set; did you mean 'WPM'?",
    "${NAME}": "'${NAME}' is not a reference; write ${env:NAME}, or $${ for a literal '${'",
    "${env:1X}": "'${env:1X}' is not a reference; write ${env:NAME}, or $${ for a literal '${'",
    "${env:}": "'${env:}' is not a reference; write ${env:NAME}, or $${ for a literal '${'",
    "${env:NAME": "'${env:NAME' is not a reference; write ${env:NAME}, or $${ for a literal '${'",
    "${file:x}": "'${file:x}' is not a reference; write ${env:NAME}, or $${ for a literal '${'",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_reference_is_a_fault_and_stays_as_it_is_written(text: str) -> None:
    filled = Filler(ENVIRON).fill(text)
    assert (filled.text, filled.faults) == (text, [BAD[text]])


def test_every_bad_reference_of_a_text_is_told() -> None:
    assert len(Filler({}).fill("${env:A} ${env:B} ${C}").faults) == 3


def test_variables_cannot_fill_the_memory() -> None:
    filler = Filler({"BIG": "x" * 1000}, budget=2_500)
    filled = filler.fill("${env:BIG}" * 1_000)
    assert filled.faults[0] == "the variables fill in more than 2,500 characters altogether"
    assert len(filled.text) < 20_000


@given(st.text())
def test_any_text_can_be_filled(text: str) -> None:
    filled = Filler(ENVIRON).fill(text)
    assert "${" in text or filled.text == text


@given(st.text(), st.text())
def test_an_escaped_text_comes_back(before: str, after: str) -> None:
    text = (before + "${" + after).replace("$${", "${")
    assert Filler({}).fill(text.replace("${", "$${")).text == text


@pytest.mark.parametrize("text", FILLED)
def test_the_pattern_for_schemas_finds_the_same_references(text: str) -> None:
    unescaped = text.replace("$${", "")
    assert bool(re.search(REFERENCE_PATTERN, unescaped)) == bool("${" in unescaped)


def test_only_texts_are_filled_in_and_never_read_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("plain: ${env:YAML}\nquoted: \"${env:WPM}\"\nblock: |\n  ${env:NAME}\n'${env:NAME}': 1\n")
    document = load_document([path], ENVIRON)
    assert document.data == {"plain": "a: [1]", "quoted": "12", "block": "north\n", "${env:NAME}": 1}
    assert document.env == {("plain",): ("YAML",), ("quoted",): ("WPM",), ("block",): ("NAME",)}


def test_a_whole_reference_serves_where_a_number_is_due(load: Callable[..., Config]) -> None:
    text = "stages: {x: {use: tone, wpm: '${env:WPM}', volume: '${env:NONE:-0.25}', loud: '${env:NONE:-true}'}}\n"
    options = load(HEAD + text, environ=ENVIRON).options.stages["x"].options  # type: ignore[attr-defined]
    assert (options.wpm, options.volume, options.loud) == (12, 0.25, True)


def test_a_missing_variable_is_located_and_hides_no_other_fault_and_causes_none(faults: Faults) -> None:
    found = faults(HEAD + "stages:\n  x: {use: tone, wpm: '${env:NONE}', title: x}\n  y: {use: '${env:ALSO}'}\n")
    assert found == [
        "a.yaml:4:23: stages.x.wpm: environment variable 'NONE' is not set; set it, or write ${env:NAME:-default}",
        "a.yaml:4:45: stages.x.title: must have at least 2 characters, got 'x'",
        "a.yaml:5:12: stages.y.use: environment variable 'ALSO' is not set; set it, or write ${env:NAME:-default}",
    ]


def test_a_missing_variable_does_not_hide_that_its_key_is_unknown(faults: Faults) -> None:
    assert [fault.partition(": ")[2][:30] for fault in faults(HEAD + "stages: {}\nstagez: '${env:NONE}'\n")] == [
        "stagez: unknown key; did you m",
        "stagez: environment variable '",
    ]


def test_a_value_from_the_environment_is_named_and_not_shown(faults: Faults) -> None:
    environ = {"SPEED": "hunter2", "TITLE": "Untitled"}
    found = faults(HEAD + "stages: {x: {use: tone, title: '${env:TITLE}'}}\n", environ=environ)
    assert found == ["a.yaml:3:32: stages.x.title: '**********' is no title; say what it is"]
    found = faults(HEAD + "stages:\n  x: {use: tone, wpm: '${env:SPEED}', shape: 'a${env:SPEED}'}\n", environ=environ)
    assert found == [
        "a.yaml:4:23: stages.x.wpm: must be an integer, got the value of environment variable SPEED",
        "a.yaml:4:46: stages.x.shape: must be 'sine' or 'square', got the value of environment variable SPEED",
    ]


def test_the_environment_may_choose_provider_and_kind(load: Callable[..., Config]) -> None:
    text = "version: 1\npipeline: ${env:KIND}\nstages: {x: {use: '${env:STAGE:-tone}'}}\n"
    config = load(text, environ={"KIND": "flow"})
    assert config.options.stages["x"].provider.name == "tone"  # type: ignore[attr-defined]
