"""The pipeline from YAML, and the commands (WS-21)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stagewire.cli import invoke

YAML = """
version: 1
pipeline: write-session
exports:
  files: {root: tree}
put: files/in/put
logging: {level: error}
"""


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "writes.yaml"
    path.write_text(YAML)
    return path


@pytest.fixture
def program(config: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the program on arguments; ``CONFIG`` stands for the configuration."""

    def run(*arguments: str | Path) -> Result:
        words = [str(config) if word == "CONFIG" else str(word) for word in arguments]
        status = invoke(words)
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.bin"
    path.write_bytes(os.urandom(5_000_000))
    return path


def test_ws21_put_get_ls_stat_rm(program: Run, source: Path, tmp_path: Path) -> None:
    put = program("put", source, "files/a/big", "-c", "CONFIG", "--json")
    assert (put.status, json.loads(put.out)["size"]) == (0, 5_000_000)
    assert (tmp_path / "tree/a/big").read_bytes() == source.read_bytes()

    assert program("ls", "files", "-c", "CONFIG").out == "a/\n"
    assert "5,000,000" in program("ls", "files/a", "-l", "-c", "CONFIG").out
    assert program("ls", "files/a/big", "-c", "CONFIG").out == "big\n"
    assert json.loads(program("stat", "files/a/big", "-c", "CONFIG", "--json").out)["size"] == 5_000_000
    assert "file" in program("stat", "files/a/big", "-c", "CONFIG").out

    assert program("get", "files/a/big", tmp_path / "back", "-c", "CONFIG").status == 0
    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    assert program("rm", "files/a/big", "files/a", "-c", "CONFIG").status == 0
    assert program("ls", "files", "-c", "CONFIG").out == ""


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("get", "files/none", "out", "-c", "CONFIG"), 1, "there is no such file"),
        (("rm", "files/none", "-c", "CONFIG"), 1, "there is no such file"),
        (("stat", "other/x", "-c", "CONFIG"), 1, "there is no export 'other': the configuration has files"),
        (("put", "nowhere", "files/x", "-c", "CONFIG"), 2, "there is no such file"),
        (("rm", "files", "-c", "CONFIG"), 2, "EXPORT/PATH"),
        (("stat", "files/../x", "-c", "CONFIG"), 1, "single slashes"),
        (("agent", "CONFIG", "--export", "other"), 2, "'other' is none of files"),
        (("agent", "CONFIG", "--export", "files"), 2, "agents: separate"),
        (("ls", "files"), 2, "--config"),
    ],
)
def test_ws21_what_goes_wrong_is_one_line_and_a_status(
    program: Run, arguments: tuple[str, ...], status: int, text: str
) -> None:
    result = program(*arguments)
    assert (result.status, result.out) == (status, "")
    assert text in result.err
    assert len([line for line in result.err.splitlines() if line.startswith("error:")]) == 1


def test_ws21_a_get_that_fails_leaves_the_local_file(program: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert program("get", "files/none", tmp_path / "mine", "-c", "CONFIG").status == 1
    assert (tmp_path / "mine").read_text() == "mine"
    assert not list(tmp_path.glob(".mine*"))


def test_ws21_another_kind_of_pipeline_is_refused(program: Run, tmp_path: Path) -> None:
    other = Path(__file__).parents[3] / "configs/quickstart.yaml"
    result = program("ls", "files", "-c", other)
    assert result.status == 2
    assert "needs write-session" in result.err


def test_a_plain_run_writes_its_input(program: Run, source: Path, tmp_path: Path) -> None:
    result = program("run", "CONFIG", "--input", source, "--output", tmp_path / "out", "--json")
    assert result.status == 0
    assert (tmp_path / "tree/in/put").read_bytes() == source.read_bytes()
    assert json.loads(result.out)["ok"] is True


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("put: file/x", "'file' is no export; did you mean 'files'?"),
        ("put: files", "names no file"),
        ("session: {frame: 9MiB}", "frame"),
        ("session: {idle: 1}", "three times heartbeat"),
    ],
)
def test_a_wrong_configuration_is_named(program: Run, config: Path, line: str, text: str) -> None:
    config.write_text(YAML.replace("put: files/in/put", line))
    result = program("check", "CONFIG")
    assert result.status == 2
    assert text in result.err


def test_the_pipeline_is_drawn(program: Run) -> None:
    assert "controller" in program("graph", "CONFIG").out
