"""What a configuration comes to, with the origin of every value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from stagewire.config import Config, effective
from stagewire.config.render import _text
from stagewire.errors import format_path

HEAD = "version: 1\npipeline: flow\n"


def shown(config: Config, folder: Path) -> dict[str, tuple[str, str]]:
    return {
        format_path(value.path): (value.text, f"{value.location or ''}".replace(f"{folder}/", "") or value.source)
        for value in effective(config)
    }


def test_every_value_has_its_place_or_is_a_default(load: Callable[..., Config], folder: Path) -> None:
    config = load(
        HEAD + "stages:\n  x: {use: tone, wpm: 5, tags: [a, 'b: c']}\nedges: ['x -> x', {from: x, to: x}]\n",
        "limits: {requests: 7}\n",
    )
    values = shown(config, folder)
    assert list(values)[:4] == ["version", "pipeline", "name", "stages.x.use"]
    expected = {
        "version": ("1", "a.yaml:1:10"),
        "pipeline": ("flow", "a.yaml:2:11"),
        "name": ("a", "default"),
        "stages.x.use": ("tone", "a.yaml:4:12"),
        "stages.x.replicas": ("1", "default"),
        "stages.x.wpm": ("5", "a.yaml:4:23"),
        "stages.x.volume": ("0.5", "default"),
        "stages.x.loud": ("false", "default"),
        "stages.x.title": ("null", "default"),
        "stages.x.tags[0]": ("a", "a.yaml:4:33"),
        "stages.x.tags[1]": ('"b: c"', "a.yaml:4:36"),
        "stages.x.gains": ("{}", "default"),
        "edges[0].from": ("x", "a.yaml:5:9"),
        "edges[1].to": ("x", "a.yaml:5:33"),
        "limits.requests": ("7", "b.yaml:1:20"),
        "limits.timeout": ("1.0", "default"),
        "spare": ("[]", "default"),
        "transport.use": ("local", "default"),
        "logging.level": ("info", "default"),
    }
    assert {name: values[name] for name in expected} == expected


def test_values_of_the_environment_name_their_variables(load: Callable[..., Config]) -> None:
    text = "name: '${env:A}-${env:B}'\nstages: {x: {use: tone, wpm: '${env:WPM:-7}', title: '${env:T:-a title}'}}\n"
    values = {value.path: value for value in effective(load(HEAD + text, environ={"A": "a", "B": "b", "WPM": "9"}))}
    assert (values[("name",)].text, values[("name",)].source) == ("a-b", "env:A,B")
    assert (values[("stages", "x", "wpm")].text, values[("stages", "x", "wpm")].source) == ("9", "env:WPM")
    assert values[("stages", "x", "wpm")].location is not None
    assert values[("stages", "x", "title")].source == "file"
    assert values[("stages", "x", "loud")].source == "default"


def test_nested_blocks_are_shown_with_their_options(load: Callable[..., Config], folder: Path) -> None:
    values = shown(load(HEAD + "stages: {}\ntransport: {use: wrap, inner: {use: broker, port: 1234}}\n"), folder)
    assert values["transport.inner.use"] == ("broker", "a.yaml:4:37")
    assert values["transport.inner.port"] == ("1234", "a.yaml:4:51")
    assert values["stages"] == ("{}", "a.yaml:3:9")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain text", "plain text"),
        ("1", '"1"'),
        ("true", '"true"'),
        ("", '""'),
        (" x", '" x"'),
        ("x ", '"x "'),
        ("Yes", '"Yes"'),
        ("2024-01-01", '"2024-01-01"'),
        ("a\nb", '"a\\nb"'),
        ("é", "é"),
        ({1, 2}, "[1, 2]"),
        (Path("a/b"), "a/b"),
        (float("inf"), "Infinity"),
        (object, "\"<class 'object'>\""),
    ],
)
def test_values_are_written_as_yaml(value: object, text: str) -> None:
    assert _text(value) == text


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff\u2028\u2029")))
def test_a_text_reads_back_as_the_same_text(text: str) -> None:
    assert YAML(typ="safe", pure=True).load(_text(text)) == text or "://" in text
