"""A run whose output is its input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stagewire.cli import invoke

CONFIG = """
version: 1
pipeline: orchestrator
logging: {level: error}
stages:
  sentences: {use: text.sentences}
edges: []
outputs:
  sentences: {file: sentences.txt}
"""
TEXT = "It was the best of times. It was the worst of times."


@pytest.fixture
def standard_input() -> Iterator[Any]:
    """Redirect standard input from a file, as a shell does."""
    kept = os.dup(0)

    def redirect(path: Path) -> None:
        file = os.open(path, os.O_RDONLY)
        os.dup2(file, 0)
        os.close(file)

    yield redirect
    os.dup2(kept, 0)
    os.close(kept)


def itself(_output: Path) -> Path:
    return _output


def linked_to(output: Path) -> Path:
    source = output.parent / "link.txt"
    source.symlink_to(output)
    return source


def linked_from(output: Path) -> Path:
    source = output.parent / "book.txt"
    output.rename(source)
    output.symlink_to(source)
    return source


def twin(output: Path) -> Path:
    source = output.parent / "twin.txt"
    source.hardlink_to(output)
    return source


def copy(output: Path) -> Path:
    source = output.parent / "copy.txt"
    source.write_text(output.read_text())
    return source


def run(config: Path, source: Path, by_path: bool, redirect: Any) -> int:
    if not by_path:
        redirect(source)
    given = str(source) if by_path else "-"
    return invoke(["run", str(config), "--input", given, "--output", str(config.parent / "out")])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sentences.txt").write_text(TEXT)
    file = tmp_path / "one.yaml"
    file.write_text(CONFIG)
    return file


@pytest.mark.parametrize("by_path", [True, False], ids=["path", "stdin"])
@pytest.mark.parametrize("name", [itself, linked_to, linked_from, twin])
def test_a_run_that_would_replace_its_input_exits_2_and_touches_nothing(
    config: Path, name: Any, by_path: bool, standard_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    source = name(config.parent / "out" / "sentences.txt")
    assert run(config, source, by_path, standard_input) == 2
    assert source.read_text() == TEXT
    *_log, line = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{config}:9:21: outputs.sentences.file: the output ")
    assert "is the input itself" in line
    assert "choose another --output directory" in line


@pytest.mark.parametrize("by_path", [True, False], ids=["path", "stdin"])
def test_a_run_replaces_what_another_run_wrote(config: Path, by_path: bool, standard_input: Any) -> None:
    output = config.parent / "out" / "sentences.txt"
    assert run(config, copy(output), by_path, standard_input) == 0
    assert output.read_text() == TEXT.replace(". ", ".\n") + "\n"
