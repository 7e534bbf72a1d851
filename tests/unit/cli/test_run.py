"""``stagewire run``: what it reads, writes, prints and exits with."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest


def test_a_run_copies_its_input_and_prints_summary_and_files(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("hello " * 1000)
    result = stage.run("", "--input", tmp_path / "in.txt")
    assert result.status == 0
    assert (tmp_path / "out" / "copy.txt").read_text() == "hello " * 1000
    assert "bytes" in result.out
    assert "6,000" in result.out
    assert "6.0 kB" in result.out
    assert "read 4096" in result.err  # block by block


def test_the_summary_is_readable_at_80_columns_and_cuts_no_path(stage: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output = tmp_path / ("long" * 30)
    result = stage("run", stage.config(), "--output", output)
    lines = result.out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    first_column = "".join(line.split("  ")[0].strip() for line in lines if "file" not in line and "bytes" not in line)
    assert str(output / "copy.txt") in first_column


def test_brackets_in_a_path_are_no_markup(stage: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    result = stage("run", stage.config(), "--output", tmp_path / "[bold]")
    assert "[bold]" in result.out


def test_a_run_without_input_gives_the_pipeline_none(stage: Any, tmp_path: Path) -> None:
    assert stage.run().status == 0
    assert (tmp_path / "out" / "copy.txt").read_bytes() == b""


def test_quiet_prints_nothing(stage: Any) -> None:
    result = stage.run("", "--quiet")
    assert (result.status, result.out) == (0, "")


def test_json_prints_one_object_and_nothing_else(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("hello")
    result = stage.run("name: hamlet\n", "--json", "--input", tmp_path / "in.txt")
    data = json.loads(result.out)
    assert data == {
        "ok": True,
        "pipeline": "hamlet",
        "kind": "play",
        "stopped": False,
        "outputs": [{"path": str(tmp_path / "out" / "copy.txt"), "stage": "copy", "chunks": 1, "bytes": 5}],
        "failures": [],
        "summary": {"bytes": "5"},
        "details": {"bytes": 5},
    }


def test_what_a_stage_prints_is_not_part_of_the_json(stage: Any) -> None:
    result = stage.run("mode: chatty\n", "--json")
    assert json.loads(result.out)["ok"]
    assert "a stage that prints" in result.err


def test_a_failed_request_exits_1_and_is_one_line(stage: Any) -> None:
    result = stage.run("mode: failing\n")
    assert result.status == 1
    assert "failed: r1 in stage copy: no ink" in result.err.splitlines()


def test_an_error_of_the_run_exits_1_without_a_traceback(stage: Any) -> None:
    result = stage.run("mode: raising\n")
    assert result.status == 1
    assert "Traceback" not in result.err
    assert "error: RuntimeError: the play broke off (unexpected; --debug shows where it came from)" in result.err


@pytest.mark.parametrize("before", [True, False])
def test_debug_shows_the_traceback_wherever_it_stands(stage: Any, before: bool) -> None:
    config = stage.config("mode: raising\n")
    run = ["run", config, "--output", stage.folder]
    result = stage(*(["--debug", *run] if before else [*run, "--debug"]))
    assert result.status == 1
    assert "Traceback" in result.err


def test_debug_shows_the_traceback_of_a_stage_that_failed(stage: Any) -> None:
    assert "Traceback" not in stage.run("mode: broken\n").err
    result = stage.run("mode: broken\n", "--debug")
    assert result.status == 1
    assert 'raise ValueError("no ink")' in result.err or "ValueError: no ink" in result.err.partition("Traceback")[2]
    assert result.err.splitlines()[-1] == "failed: r1 in stage copy: ValueError: no ink"


def test_a_failed_run_is_an_object_for_programs_too(stage: Any) -> None:
    result = stage.run("mode: raising\n", "--json")
    assert result.status == 1
    data = json.loads(result.out)
    assert not data["ok"]
    assert data["error"]["type"] == "RuntimeError"


def test_a_wrong_configuration_exits_2_with_place_and_remedy(stage: Any) -> None:
    result = stage.run("mood: copy\nfail: maybe\n")
    assert result.status == 2
    first, second = result.err.splitlines()
    assert first.startswith(f"{stage.folder / 'play.yaml'}:4:1: mood: unknown key; did you mean 'mode'?")
    assert ":5:7: fail:" in second
    assert not (stage.folder / "out").exists()


def test_a_wrong_configuration_is_an_object_with_places_for_programs(stage: Any) -> None:
    result = stage.run("mood: copy\n", "--json")
    (problem,) = json.loads(result.out)["error"]["problems"]
    assert (problem["line"], problem["column"], problem["path"]) == (4, 1, ["mood"])


def test_overlays_are_laid_over_the_configuration_in_order(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("mode: failing\n")
    (tmp_path / "two.yaml").write_text("mode: chatty\n")
    assert stage.run("", "-c", tmp_path / "one.yaml").status == 1
    result = stage.run("", "-c", tmp_path / "one.yaml", "--config", tmp_path / "two.yaml")
    assert result.status == 0
    assert "a stage that prints" in result.out


def test_a_missing_configuration_exits_2(stage: Any, tmp_path: Path) -> None:
    result = stage("run", tmp_path / "none.yaml")
    assert result.status == 2
    assert "none.yaml" in result.err


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: None, "there is no such file"),
        (lambda path: path.mkdir(), "is a directory; name a file, or - for standard input"),
    ],
    ids=["missing", "directory"],
)
def test_an_input_that_cannot_be_read_exits_2(stage: Any, tmp_path: Path, make: Any, expected: str) -> None:
    make(tmp_path / "in.txt")
    result = stage.run("", "--input", tmp_path / "in.txt")
    assert result.status == 2
    assert expected in result.err
    assert "--input" in result.err
    assert len(result.err.splitlines()) == 1


def test_a_directory_is_an_input_for_a_pipeline_that_takes_one(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    result = stage("run", stage.config("mode: folder\n"), "--input", tmp_path / "photos", "--output", tmp_path / "out")
    assert result.status == 2
    text = (tmp_path / "play.yaml").read_text().replace("pipeline: play", "pipeline: gallery")
    (tmp_path / "play.yaml").write_text(text)
    result = stage("run", tmp_path / "play.yaml", "--input", tmp_path / "photos", "--output", tmp_path / "out")
    assert result.status == 0, result.err
    assert str(tmp_path / "photos") in result.err


def test_an_input_without_permission_exits_2(stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_open = os.open

    def refuse(path: Any, *rest: Any) -> int:
        if str(path).endswith("in.txt"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return really_open(path, *rest)

    monkeypatch.setattr("os.open", refuse)  # the tests may run as root, who may read everything
    result = stage.run("", "--input", tmp_path / "in.txt")
    assert result.status == 2
    assert "you may not read it" in result.err


def test_an_output_that_is_a_file_exits_2(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    assert stage.run().status == 2


def test_an_output_that_cannot_be_made_exits_2(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = stage("run", stage.config(), "--output", tmp_path / "file" / "out")
    assert result.status == 2
    assert "cannot be made" in result.err


def test_no_bar_is_drawn_where_nobody_watches(stage: Any) -> None:
    result = stage.run()
    assert "\x1b" not in result.err + result.out
    assert "━" not in result.err


def test_a_bar_is_drawn_on_a_terminal_and_a_chatty_stage_does_not_disturb_it(stage: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    (stage.folder / "in.txt").write_text("x" * 10_000)
    result = stage.run("name: ham[let]\n", "--input", stage.folder / "in.txt")
    assert result.status == 0
    assert "ham[let]" in result.err
    assert "━" in result.err


@pytest.mark.parametrize(("mode", "shown"), [("own_view", "a table of its own"), ("broken_view", "━")])
def test_csp16_a_pipelines_own_view_takes_the_place_of_the_bar_unless_it_fails(
    stage: Any, monkeypatch: Any, mode: str, shown: str
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    result = stage.run(f"mode: {mode}\n")
    assert result.status == 0
    assert shown in result.err
