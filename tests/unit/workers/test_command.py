"""``stagewire worker``: what it refuses, with the place and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagewire.cli.exits import Exit
from stagewire.cli.main import invoke

HEAD = """version: 1
pipeline: orchestrator
transport: {use: rabbitmq, url: "amqp://guest:guest@127.0.0.1:1/"}
workers: external
stages:
  sentences: {use: text.sentences, replicas: 2}
  morse: {use: morse.encode, workers: in-process}
edges: [{from: sentences, to: morse, kind: chunk}]
outputs: {morse: {file: x.txt}}
"""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--stage", "sentence"], ":5:1: stages: there is no stage 'sentence'; did you mean 'sentences'?"),
        (["--stage", "morse"], ":7:10: stages.morse: the stage runs inside the orchestrator's process"),
        (["--stage", "sentences", "--replicas", "3"], ":6:46: stages.sentences.replicas: there are 2 replicas"),
        (["--stage", "sentences", "--replica", "2"], ":6:46: stages.sentences.replicas: there are 2 replicas"),
        ([], "Missing option '--stage'"),
    ],
)
def test_or15_a_worker_that_cannot_be_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(HEAD)
    assert invoke(["worker", str(file), *arguments]) == 2
    assert told in capsys.readouterr().err


def test_or15_only_an_orchestrator_has_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("version: 1\npipeline: csp\n")
    assert invoke(["worker", str(file), "--stage", "s"]) == 2
    assert "p.yaml" in capsys.readouterr().err


def test_tr7_a_worker_without_a_broker_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(HEAD)
    assert invoke(["worker", str(file), "--stage", "sentences"]) == Exit.USAGE
    assert "nothing listens there" in capfd.readouterr().err
