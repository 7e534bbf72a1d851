"""configs/csp-captions.yaml: every image is captioned, asked about again, or reported, and the books balance."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

missing = [name for name in ("PIL", "aiohttp") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        bool(missing) and os.environ.get("CI") != "true", reason='needs Pillow: pip install "stagewire[images]"'
    ),
]

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
COUNT = 200
UNWELL = "delay: 0.02, fail: 0.1, late: 0.1, late_by: 2"
"""A captioner that refuses one in ten and answers one in ten too late for `HASTY`."""

HASTY = "timeout: 1, attempts: 12, backoff: 0.01"

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from stagewire_examples.captions.samples import make_samples  # noqa: PLC0415 — needs Pillow

    folder = tmp_path_factory.mktemp("photos")
    make_samples(folder, COUNT, long_side=300)
    return folder


@pytest.fixture
def start(tmp_path: Path, photos: Path) -> Iterator[Start]:
    """Start ``stagewire run`` on the shipped file with an overlay; the value ends with the test."""
    processes = []

    def begin(overlay: str, *arguments: str, source: Path = photos, **options: Any) -> subprocess.Popen[str]:
        site = tmp_path / "site.yaml"
        site.write_text(overlay)
        command = [sys.executable, "-m", "stagewire", "run", str(CONFIGS / "csp-captions.yaml"), "-c", str(site)]
        command += ["--input", str(source), "--output", str(tmp_path / "out"), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        processes.append(subprocess.Popen(command, text=True, start_new_session=True, **pipes))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def outcome(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=90)
    assert out, err
    data: dict[str, Any] = json.loads(out)
    return data


def check_books(details: dict[str, Any]) -> None:
    """Every T, Q, slot and permit is accounted for (CSP-15), from the numbers and not from their verdict."""
    state = details["state"]
    for side in (state["t"], state["q"]):
        assert side["produced"] == side["consumed"] + side["written_off"] + side["expired"]
        assert side["depth"] == 0
    permits = (state["t"]["slots"], state["q"]["slots"], state["physical"], state["q_pending"])
    assert [(each["held"], each["waiting"], each["free"] - each["cap"]) for each in permits] == [(0, 0, 0)] * 4
    requests = state["requests"]
    assert requests["sent"] == requests["answered"] + requests["failed"] + requests["given_up"]
    assert requests["in_flight"] == 0
    assert details["balanced"]
    assert not details["stuck"]


def check_all_captioned(data: dict[str, Any], folder: Path, count: int) -> str:
    assert (data["ok"], data["failures"]) == (True, [])
    check_books(data["details"])
    assert data["details"]["state"]["t"]["consumed"] == count
    page = (folder / "contact-sheet.html").read_text()
    assert f"{count} of {count} images" in page
    names = {path.name for path in (folder / "captioned").iterdir()}
    assert names == {f"photo-{number:03}.jpg.jpg" for number in range(1, count + 1)}
    assert [each["chunks"] for each in data["outputs"]] == [count, count]
    return page


def test_csp15_200_images_with_a_captioner_that_fails_and_is_late(start: Start, tmp_path: Path) -> None:
    data = outcome(start(f"q: {{{HASTY}, captioner: {{{UNWELL}, workers: 64}}}}\n", "--json"))
    page = check_all_captioned(data, tmp_path / "out", COUNT)
    again = [int(number) for number in re.findall(r"asked (\d+) times", page)]
    assert len(again) >= 20  # a fifth is expected


def test_csp15_what_has_no_caption_in_the_end_is_reported_by_name(start: Start, tmp_path: Path, photos: Path) -> None:
    source = tmp_path / "some"
    source.mkdir()
    for path in sorted(photos.iterdir())[:20]:
        (source / path.name).write_bytes(path.read_bytes())
    (source / "broken.jpg").write_bytes(b"no image")
    overlay = "q: {attempts: 2, backoff: 0.01, captioner: {delay: 0, fail: 0.5}}\nfailures: {backoff: 0.001}\n"
    process = start(overlay, "--json", source=source)
    data = outcome(process)
    assert process.returncode == 1
    check_books(data["details"])
    reported = {name for each in data["failures"] for name in re.findall(r"(\S+) has no caption", each["cause"])}
    pictures = {path.name.removesuffix(".jpg") for path in (tmp_path / "out" / "captioned").iterdir()}
    assert "broken.jpg" in reported
    assert reported | pictures == {path.name for path in source.iterdir()}
    assert not reported & pictures
    assert len(reported) > 1


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_csp15_a_stop_in_the_middle_ends_within_the_deadline_and_accounts_for_everything(
    start: Start, tmp_path: Path, sign: signal.Signals
) -> None:
    captioner = "{delay: 0.3, fail: 0.1, late: 0.1, late_by: 60}"
    process = start(f"q: {{timeout: 60, captioner: {captioner}}}\ndeadline: 3\n", "--json")
    pictures = tmp_path / "out" / "captioned"
    wait_until(lambda: pictures.is_dir() and len(list(pictures.iterdir())) > 10)
    process.send_signal(sign)
    began = time.monotonic()
    data = outcome(process)
    assert time.monotonic() - began < 10
    assert process.returncode == 128 + sign
    assert data["stopped"]
    check_books(data["details"])
    done = len(list(pictures.iterdir()))
    assert 10 < done < COUNT
    assert f"{done} of " in (tmp_path / "out" / "contact-sheet.html").read_text()


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.02)


@contextmanager
def serving(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | options
    process = subprocess.Popen([sys.executable, *command], text=True, start_new_session=True, **pipes)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()


def test_csp12_the_captioner_over_http_in_a_process_of_its_own(start: Start, tmp_path: Path) -> None:
    unwell = ("--delay", "0.02", "--fail", "0.1", "--late", "0.1", "--late-by", "2")
    with serving("-m", "stagewire_examples.captions.web", "--port", "0", *unwell) as service:
        assert service.stdout is not None
        line = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", line)):
            line = service.stdout.readline()
            assert line, "the service ended"
        threading.Thread(target=service.stdout.read, daemon=True).start()
        q = f'q: {{use: captions.http, url: "{found[0]}/caption", captioner: null, {HASTY}}}\n'
        page = check_all_captioned(outcome(start(q, "--json")), tmp_path / "out", COUNT)
    assert "asked 2 times" in page


def test_csp12_the_captioner_over_rabbitmq_in_another_process(start: Start, tmp_path: Path, amqp_url: str) -> None:
    unwell = tmp_path / "unwell.yaml"
    unwell.write_text("delay: 0.02\nfail: 0.1\nlate: 0.1\nlate_by: 2\nworkers: 32\nlogging: {level: warning}\n")
    service = ("-m", "stagewire", "run", str(CONFIGS / "captioner.yaml"), "-c", str(unwell), "--json")
    with serving(*service, cwd=tmp_path, env={**os.environ, "AMQP_URL": amqp_url}, stderr=None) as captioner:
        transport = f'transport: {{use: rabbitmq, url: "{amqp_url}"}}\n'
        data = outcome(start(f"q: {{captioner: null, {HASTY}}}\n{transport}", "--json"))
        page = check_all_captioned(data, tmp_path / "out", COUNT)
        assert "asked 2 times" in page
        captioner.send_signal(signal.SIGTERM)
        served = json.loads(captioner.communicate(timeout=20)[0])["details"]
    assert served["answered"] >= COUNT
    assert served["refused"] > 0


def test_csp16_the_live_state_is_served_as_metrics_while_it_runs(start: Start, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    log = tmp_path / "log"
    overlay = f"q: {{captioner: {{delay: 0.3}}}}\nmetrics: {{port: 0}}\nlogging: {{level: info, file: {log}}}\n"
    process = start(overlay, "--json")
    pictures = tmp_path / "out" / "captioned"
    wait_until(lambda: pictures.is_dir() and len(list(pictures.iterdir())) > 10)
    port = next(line["port"] for line in map(json.loads, log.read_text().splitlines()) if "port" in line)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    values = {name: float(value) for name, value in re.findall(r"^(stagewire\S+) (\S+)$", text, re.MULTILINE)}
    name = 'stagewire_csp_{}_total{{event="{}",pipeline="csp-captions",side="{}"}}'
    assert 10 < values[name.format("resources", "consumed", "t")] <= values[name.format("resources", "produced", "t")]
    assert values['stagewire_csp_permits_held{capacity="q_pending",pipeline="csp-captions"}'] > 0
    assert values['stagewire_transport_puts_total{edge="captions",pipeline="csp-captions"}'] > 10
    check_books(outcome(process)["details"])


def test_csp16_a_terminal_shows_the_table_at_80_columns_and_is_clean_at_the_end(start: Start) -> None:
    text = on_a_terminal(start)
    tables = re.findall(r"\d+ pairs in .*?a second: [^\n]*", text, re.DOTALL)
    assert tables
    lines = [line.rstrip() for table in tables for line in table.splitlines()]
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    for part in ("held", "consumed", "physical", "pending", "claims", "░", "█"):
        assert any(part in line for line in lines)
    assert "books" in text.rpartition("a second: ")[2]


def on_a_terminal(start: Start) -> str:
    """Run on a terminal of 80 by 24; returns what it was sent, without what moves the cursor and paints."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    process = start(
        "q: {captioner: {delay: 0.3}}\n", stdin=theirs, stdout=theirs, stderr=theirs, env={**env, "TERM": "xterm"}
    )
    os.close(theirs)
    sent = bytearray()
    try:
        while block := os.read(ours, 65_536):
            sent += block
    except OSError:  # the other end was closed
        pass
    finally:
        os.close(ours)
    assert process.wait(30) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent.decode()).replace("\r\n", "\n").replace("\r", "\n")


def test_csp16_there_is_no_table_where_nobody_watches(start: Start) -> None:
    process = start("q: {captioner: {delay: 0}}\n")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "\x1b" not in out + err
    assert err == ""
