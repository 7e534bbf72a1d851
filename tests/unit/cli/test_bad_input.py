"""Each kind of bad input that a file may hold: where it stands, its path, and what to do about it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from stagewire import Extra, Provider, hookimpl

HEAD = "version: 1\npipeline: orchestrator\n"
GOOD = HEAD + "stages:\n  a: {use: text.sentences}\n  b: {use: text.words}\n"
LINK = "edges:\n  - {from: a, to: b, kind: chunk}\n"
KEEP = "outputs: {b: {file: b.jsonl}}\n"


def acme(broken: bool) -> ModuleType:
    def stages() -> list[Provider[Any]]:
        if broken:
            raise ImportError("no module named 'driver'")
        extra = Extra("rabbitmq", ("no_such_driver",))
        return [Provider(name="acme.one", summary="", factory=lambda _options, _context: None, extra=extra)]

    module = ModuleType("acme")
    module.stagewire_stages = hookimpl(stages)  # type: ignore[attr-defined]
    return module


BOMB = "x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]\n" for level in range(1, 12)
)

CASES = {
    "unknown key": (GOOD + "edgse: []\n" + LINK, ":6:1: edgse: unknown key; did you mean 'edges'?"),
    "wrong type": (GOOD.replace("{use: text.words}", "{use: text.words, replicas: many}") + LINK, "stages.b.replicas:"),
    "dangling stage": (GOOD + LINK.replace("to: b", "to: bb"), ":7:19: edges[0].to: there is no stage 'bb'"),
    "cycle": (GOOD + LINK + "  - {from: b, to: a, kind: chunk}\n", "edges"),
    "unreachable stage": (
        GOOD + LINK + "  - {from: c, to: d, kind: chunk}\n  - {from: d, to: c, kind: chunk}\n", "edges"
    ),
    "duplicate key": (HEAD + "pipeline: csp\n" + GOOD.removeprefix(HEAD) + LINK, ":3:1: pipeline:"),
    "missing variable": (GOOD + LINK + "name: ${env:NO_SUCH_NAME}\n", "NO_SUCH_NAME"),
    "unknown plugin": (GOOD.replace("text.words", "text.wrods") + LINK, ":5:12: stages.b.use: no stage is called"),
    "unknown kind": (GOOD.replace("orchestrator", "orchestra") + LINK, ":2:11: pipeline:"),
    "bomb": (GOOD + LINK + BOMB, ":12:40: holds more than"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_check_locates_it(stage: Any, case: str) -> None:
    text, expected = CASES[case]
    path = stage.folder / "bad.yaml"
    path.write_text(text + KEEP)
    result = stage("check", path)
    assert result.status == 2
    lines = result.err.splitlines()
    assert lines
    assert all(line.startswith(f"{path}:") for line in lines), lines
    assert expected in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("broken", "remedy"),
    [(True, "STAGEWIRE_PLUGINS_BLOCK=acme"), (False, 'pip install "stagewire[rabbitmq]"')],
    ids=["broken plugin", "missing extra"],
)
def test_check_locates_what_a_plugin_cannot_give(stage: Any, broken: bool, remedy: str) -> None:
    path = stage.folder / "bad.yaml"
    path.write_text(GOOD.replace("text.words", "acme.one") + LINK + KEEP)
    result = stage("check", path, plugins={"acme": acme(broken)})
    assert result.status == 2
    assert result.err.startswith(f"{path}:5:12: stages.b.use: stage 'acme.one'")
    assert remedy in result.err


def test_check_locates_a_file_that_is_not_there(stage: Any) -> None:
    result = stage("check", stage.folder / "none.yaml")
    assert result.status == 2
    assert result.err.startswith(f"{stage.folder / 'none.yaml'}:1:1: no such file")


def test_several_faults_are_reported_at_once_in_the_order_of_the_file(stage: Any) -> None:
    path = stage.folder / "bad.yaml"
    path.write_text(GOOD.replace("text.words", "text.wrods") + "edgse: []\n" + LINK.replace("to: b", "to: bb") + KEEP)
    result = stage("check", path)
    assert [line.split(":")[1] for line in result.err.splitlines()] == ["5", "6", "8"]
