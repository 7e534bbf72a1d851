"""configs/quickstart-rabbitmq.yaml: three processes put out the very bytes that one does, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = ROOT / "configs"
PATIENCE = 60.0
RUNS = int(os.environ.get("STAGEWIRE_CHAOS_RUNS", "2"))


@dataclass
class Child:
    """``stagewire run``, or a worker, as a child process; its log is read line by line."""

    process: subprocess.Popen[bytes]
    log: Path

    def events(self) -> list[dict[str, Any]]:
        lines = self.log.read_text("utf-8", "replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def wait_for(self, name: str, count: int = 1, **fields: Any) -> list[dict[str, Any]]:
        deadline = time.monotonic() + PATIENCE
        while True:
            found = [
                event
                for event in self.events()
                if event["event"] == name and all(event.get(key) == value for key, value in fields.items())
            ]
            if len(found) >= count:
                return found
            assert self.process.poll() is None, f"it ended: {self.log.read_text()}"
            assert time.monotonic() < deadline, f"no {name} in {self.log.read_text()}"
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(PATIENCE)

    def worker(self, stage: str) -> int:
        """Return the process id of the worker of a stage that it started."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == self.process.pid and b"--stage" in words and stage.encode() in words:
                return int(folder.name)
        raise AssertionError(f"there is no worker of {stage}")


@contextmanager
def child(folder: Path, url: str, *arguments: str, name: str = "run", **options: Any) -> Iterator[Child]:
    log = folder / f"{name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "stagewire", *arguments],
            env={**os.environ, "STAGEWIRE_AMQP_URL": url},
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
            **options,
        )
    with process:
        try:
            yield Child(process, log)
        finally:
            if process.poll() is None:
                process.kill()


def arguments(config: Path | str, source: str | Path, output: Path) -> tuple[str, ...]:
    return ("run", str(CONFIGS / config), "--input", str(source), "--output", str(output))


def here(folder: Path, source: Path) -> Path:
    """Run the quickstart in one process; returns where its outputs are."""
    output = folder / "here"
    subprocess.run(
        [sys.executable, "-m", "stagewire", *arguments("quickstart.yaml", source, output)],
        check=True,
        capture_output=True,
    )
    return output


def assert_same(one: Path, other: Path) -> None:
    for name in ("sentences.txt", "tone.wav"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.fixture
def source(tmp_path: Path, write_text: Callable[[int], str]) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(write_text(2_000))
    return path


def test_or15_three_processes_put_out_the_bytes_of_one(amqp_url: str, tmp_path: Path, source: Path) -> None:
    output = tmp_path / "there"
    with child(tmp_path, amqp_url, *arguments("quickstart-rabbitmq.yaml", source, output)) as run:
        assert run.end() == 0, run.log.read_text()
        stages = {event["stage"] for event in run.events() if event["event"] == "worker.registered"}
    assert stages == {"sentences", "morse", "tone"}
    assert_same(here(tmp_path, source), output)


@pytest.mark.parametrize("number", range(RUNS))
def test_or15_the_morse_worker_killed_in_the_middle_changes_no_byte(
    amqp_url: str, tmp_path: Path, source: Path, number: int
) -> None:
    text = source.read_text()
    half = len(text) * (number + 1) // (RUNS + 1)
    output = tmp_path / "there"
    command = arguments("quickstart-rabbitmq.yaml", "-", output)
    with child(tmp_path, amqp_url, *command, stdin=subprocess.PIPE) as run:
        assert run.process.stdin is not None
        run.wait_for("worker.registered", 3)
        run.process.stdin.write(text[:half].encode())
        run.process.stdin.flush()
        time.sleep(0.05 * number)  # each run kills at another moment of the work
        os.kill(run.worker("morse"), signal.SIGKILL)
        run.process.stdin.write(text[half:].encode())
        run.process.stdin.close()
        assert run.end() == 0, run.log.read_text()
        names = [event["event"] for event in run.events()]
    assert names.count("worker.lost") == 1
    assert names.count("worker.resumed") == 1
    assert_same(here(tmp_path, source), output)


def test_or11_a_worker_that_cannot_be_resumed_fails_the_run_with_stage_and_replica(
    amqp_url: str, tmp_path: Path
) -> None:
    command = arguments("quickstart-rabbitmq.yaml", "-", tmp_path / "there")
    with child(tmp_path, amqp_url, *command, stdin=subprocess.PIPE) as run:
        run.wait_for("worker.registered", 3)
        assert run.process.stdin is not None
        run.process.stdin.write(b"One sentence. And the next one.")
        run.process.stdin.flush()
        os.kill(run.worker("tone"), signal.SIGKILL)
        (failed,) = run.wait_for("request.failed")
        run.process.stdin.close()
        assert run.end() == 1
    assert failed["stage"] == "tone"
    assert "its replica 0 was lost: its process was killed by SIGKILL" in failed["cause"]


@pytest.mark.parametrize("number", range(RUNS))
def test_or12_the_orchestrator_stopped_by_sigterm_ends_in_order_with_its_workers(
    amqp_url: str, tmp_path: Path, number: int
) -> None:
    command = arguments("quickstart-rabbitmq.yaml", "-", tmp_path / "there")
    with child(tmp_path, amqp_url, *command, stdin=subprocess.PIPE) as run:
        run.wait_for("worker.registered", 3)
        workers = [run.worker(stage) for stage in ("sentences", "morse", "tone")]
        assert run.process.stdin is not None
        run.process.stdin.write(b"The wire is fine. " * 20 * (number + 1))
        run.process.stdin.flush()
        run.process.send_signal(signal.SIGTERM)
        assert run.end() == 143, run.log.read_text()
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_or15_workers_that_others_start_are_waited_for_and_outlive_the_run(
    amqp_url: str, tmp_path: Path, source: Path
) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("workers: external\n")
    config = str(CONFIGS / "quickstart-rabbitmq.yaml")
    output = tmp_path / "there"
    command = (*arguments("quickstart-rabbitmq.yaml", source, output), "-c", str(site))

    def worker(stage: str) -> Any:
        return child(tmp_path, amqp_url, "worker", config, "-c", str(site), "--stage", stage, name=stage)

    with child(tmp_path, amqp_url, *command) as run:
        told = run.wait_for("worker.awaited", 3)
        assert all("stagewire worker CONFIG --stage" in event["remedy"] for event in told)
        with worker("sentences"), worker("morse") as morse, worker("tone"):
            assert run.end() == 0, run.log.read_text()
            assert morse.process.poll() is None
            morse.process.send_signal(signal.SIGTERM)
            assert morse.end() == 143, morse.log.read_text()
    assert_same(here(tmp_path, source), output)


def test_or12_workers_end_when_the_orchestrator_is_killed(amqp_url: str, tmp_path: Path) -> None:
    command = arguments("quickstart-rabbitmq.yaml", "-", tmp_path / "there")
    with child(tmp_path, amqp_url, *command, stdin=subprocess.PIPE) as run:
        run.wait_for("worker.registered", 3)
        workers = [run.worker(stage) for stage in ("sentences", "morse", "tone")]
        run.process.kill()
        deadline = time.monotonic() + PATIENCE
        while left := [pid for pid in workers if Path(f"/proc/{pid}").exists()]:
            assert time.monotonic() < deadline, left
            time.sleep(0.05)
