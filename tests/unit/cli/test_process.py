"""The program as a process: pipes, signals, and an end that always comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration


def ready(process: subprocess.Popen[str], word: str = "ready") -> None:
    """Wait until the process says the word on standard error."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.strip() == word:
            return
    pytest.fail(f"the process ended without {word!r}")


def test_standard_input_is_read_as_it_comes(stage: Any, started: Any, tmp_path: Path) -> None:
    process = started("run", stage.config(), "--input", "-", "--json", stdin=subprocess.PIPE)
    process.stdin.write("first\n")
    process.stdin.flush()
    ready(process, "read 6")  # although the pipe stays open
    process.stdin.write("second\n")
    out, _err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(out)["details"] == {"bytes": 13}
    assert (tmp_path / "out" / "copy.txt").read_text() == "first\nsecond\n"


def test_a_file_on_standard_input_is_read_from_where_it_stands(stage: Any, started: Any, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("skipped kept")
    with (tmp_path / "in.txt").open() as file:
        os.lseek(file.fileno(), 8, os.SEEK_SET)
        process = started("run", stage.config(), "--input", "-", stdin=file)
        process.communicate(timeout=30)
    assert (tmp_path / "out" / "copy.txt").read_text() == "kept"


def test_a_closed_standard_input_exits_2(stage: Any, started: Any) -> None:
    process = started("run", stage.config(), "--input", "-", stdin=None, preexec_fn=lambda: os.close(0))
    _out, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "<stdin>: it is closed" in err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_sd8_a_signal_stops_cleanly_and_the_status_names_it(stage: Any, started: Any, number: int, status: int) -> None:
    process = started("run", stage.config("mode: wait\n"))
    ready(process)
    process.send_signal(number)
    _out, err = process.communicate(timeout=20)
    assert process.returncode == status
    assert "shutdown" in err.splitlines()
    assert "Traceback" not in err


def test_sd8_a_signal_ends_a_read_of_a_silent_pipe(stage: Any, started: Any) -> None:
    process = started("run", stage.config(), "--input", "-", "--deadline", "0.1", stdin=subprocess.PIPE)
    process.stdin.write("first\n")
    process.stdin.flush()
    ready(process, "read 6")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)
    assert process.returncode == 3  # this play does not heed the stop; what matters is that it ends


def test_sd8_work_that_is_done_when_the_signal_comes_counts_as_done(stage: Any, started: Any) -> None:
    process = started("run", stage.config("mode: finish\n"))
    ready(process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_sd8_a_second_signal_says_what_is_waited_for_and_forced_is_told_from_clean(stage: Any, started: Any) -> None:
    process = started("run", stage.config("mode: stubborn\n"), "--deadline", "1.5", "--json")
    ready(process)
    process.send_signal(signal.SIGINT)
    ready(process, "SIGINT: stopping, for at most 1.5 s; once more says what it is waiting for")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "SIGINT: still waiting for stage 'ink'" in err.splitlines()
    assert "error: forced to end 1.5 s after SIGINT, still waiting for stage 'ink'" in err.splitlines()
    assert "shutdown" in err.splitlines()  # forced, and yet in order
    assert "Traceback" not in err
    data = json.loads(out)
    assert (data["ok"], data["stopped"], data["error"]["type"]) == (False, True, "ForcedStop")
    assert data["outputs"] == [{"path": "out/half.txt", "stage": "copy", "chunks": 1, "bytes": 4}]


@pytest.mark.parametrize("mode", ["stubborn", "deaf"])
def test_sd8_a_forced_stop_still_prints_the_summary(stage: Any, started: Any, mode: str) -> None:
    process = started("run", stage.config(f"mode: {mode}\n"), "--deadline", "0.2")
    ready(process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 3
    assert "error: forced to end 0.2 s after SIGTERM, still waiting for" in err
    assert ("out/half.txt" in out) == (mode == "stubborn")


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)], ids=str)
def test_closed_standard_streams_change_nothing_about_a_run(
    stage: Any, started: Any, tmp_path: Path, closed: tuple[int, ...]
) -> None:
    def close() -> None:
        for fd in closed:
            os.close(fd)

    (tmp_path / "in.txt").write_text("hello")
    process = started("run", stage.config(), "--input", tmp_path / "in.txt", preexec_fn=close)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert (tmp_path / "out" / "copy.txt").read_text() == "hello"  # and nothing of what is said to a person
    assert bool(out) == (1 not in closed)
    assert bool(err) == (2 not in closed)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["summary", "json"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_run_that_nobody_watches_any_more_ends_as_it_would(
    stage: Any, started: Any, stream: str, options: tuple[str, ...]
) -> None:
    process = started("run", stage.config("mode: failing\n"), *options)
    getattr(process, stream).close()
    process.wait(timeout=20)
    assert process.returncode == 1
    started_well = started("run", stage.config("mode: quiet\n"), *options)
    getattr(started_well, stream).close()
    started_well.wait(timeout=20)
    assert started_well.returncode == 0


def test_an_error_that_nobody_reads_keeps_its_status(stage: Any, started: Any) -> None:
    process = started("run", stage.config("mood: bad\n"))
    process.stderr.close()
    process.wait(timeout=20)
    assert process.returncode == 2


def test_standard_output_that_is_full_is_one_line_and_fails(stage: Any, started: Any) -> None:
    with Path("/dev/full").open("w") as full:
        process = started("run", stage.config("mode: quiet\n"), stdout=full)
        _out, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err.splitlines() == ["shutdown", "error: standard output cannot be written: No space left on device"]


@pytest.mark.parametrize("options", [(), ("--quiet",)], ids=["plain", "quiet"])
def test_data_on_standard_input_that_nobody_asked_for_is_told(
    stage: Any, started: Any, options: tuple[str, ...]
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"hello")
    process = started("run", stage.config("mode: quiet\n"), *options, stdin=reading)
    _out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert err.count("`--input -` feeds the pipeline with it") == (not options)
    for fd in (reading, writing):
        os.close(fd)


@pytest.mark.slow
def test_sd8_neither_a_blocked_event_loop_nor_a_thread_left_behind_can_keep_the_process(
    stage: Any, started: Any
) -> None:
    blocked = started("run", stage.config("mode: blocked\n", "blocked.yaml"), "--deadline", "0")
    ready(blocked)
    blocked.send_signal(signal.SIGTERM)
    left = started("run", stage.config("mode: thread\n", "thread.yaml"))
    for process, what in ((blocked, "what blocks the event loop: task "), (left, "a thread that was left behind")):
        _out, err = process.communicate(timeout=30)
        assert process.returncode == 3
        assert any(line.startswith(f"error: forced to end, still waiting for {what}") for line in err.splitlines())


def test_ctrl_c_before_the_run_prints_no_traceback(stage: Any, started: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = started("run", stage.config(), "--input", tmp_path / "pipe")  # opening it waits for a writer
    deadline = time.monotonic() + 20
    while Path(f"/proc/{process.pid}/wchan").read_text() not in {"wait_for_partner", "fifo_open"}:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == ""


@pytest.mark.parametrize("command", ["schema", "version"], ids=["more than a buffer", "less than a buffer"])
def test_a_broken_pipe_is_quiet(stage: Any, started: Any, command: str) -> None:
    process = started(command)
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=20)
    assert process.returncode == 141
    assert err == ""


def test_a_name_that_the_terminal_cannot_show_is_escaped(stage: Any, started: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("COLUMNS", "300")
    process = started("run", stage.config(), "--output", stage.folder / "čaj")
    out, _err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "\\u010daj" in out


WATCHDOG = """
import os, signal, sys, threading, time
from stagewire.cli.watchdog import Watchdog
dog = Watchdog(3)
dog.start()
{}
"""


def guarded(body: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WATCHDOG.format(body)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_a_signal_inside_the_block_starts_the_countdown() -> None:
    handler = "signal.signal(signal.SIGTERM, lambda *_: None)"
    done = guarded(f"{handler}\nwith dog.after_signal(0.1): os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)")
    assert (done.returncode, done.stderr) == (3, "error: forced to end, still waiting for what blocks the event loop\n")


def test_leaving_the_block_ends_the_countdown() -> None:
    done = guarded("with dog.after_signal(60): dog.arm(0.1, 'nothing')\ntime.sleep(0.3); sys.exit(7)")
    assert done.returncode == 7


def test_the_earliest_end_counts() -> None:
    done = guarded("dog.arm(0.1, 'the first'); dog.arm(60, 'the second'); time.sleep(60)")
    assert done.stderr == "error: forced to end, still waiting for the first\n"


def test_a_signal_of_a_forked_worker_is_its_own() -> None:
    body = """
with dog.after_signal(0.1):
    worker = os.fork()
    if not worker:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        time.sleep(60)
    time.sleep(0.2)
    os.kill(worker, signal.SIGTERM)
    os.waitpid(worker, 0)
    time.sleep(0.3)
sys.exit(7)
"""
    assert guarded(body).returncode == 7
