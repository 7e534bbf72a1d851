"""``stagewire logs`` as a program: signals, closed pipes, real logs, and a browser that looks at the report."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import pytest

from stagewire_logs.testing import CspFaults, RequestFaults, Stopwatch, csp_run, encode, request_run

pytestmark = pytest.mark.integration
Unavailable = Callable[[str], NoReturn]
ROOT = Path(__file__).parents[3]
PROGRAM = (sys.executable, "-m", "stagewire")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that is read by several processes."""
    path = tmp_path_factory.mktemp("logs") / "large.log"
    watch = Stopwatch()
    with path.open("wb") as file:
        for seed in range(3):
            block = b"".join(encode(request_run(seed, 5000, watch=watch)))
            for _ in range(4):
                file.write(block)
    assert path.stat().st_size > 64 * 1024 * 1024
    return path


def test_lg7_ctrl_c_prints_the_partial_report_and_leaves_nothing_behind(large: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [*PROGRAM, "logs", "summary", "--format", "json", str(large), str(pipe)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as program:
        writer = os.open(pipe, os.O_WRONLY)  # opens when the first file was read; nothing comes
        os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=60)
        os.close(writer)
    assert program.returncode == 130, err
    found = json.loads(out)
    assert not found["complete"]
    assert found["records"] > 100_000
    assert b"Traceback" not in err


@pytest.mark.parametrize("command", ["summary", "tail"])
def test_lg6_a_closed_pipe_is_quiet(command: str, large: Path) -> None:
    options = ["--no-follow", "-n", "50000"] if command == "tail" else ["--format", "json", "--processes", "1"]
    with subprocess.Popen(
        [*PROGRAM, "logs", command, *options, str(large)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        err = program.stderr.read()
        assert program.wait(timeout=60) in {0, 128 + signal.SIGPIPE}
    assert err == b""


def test_lg7_memory_is_bounded(large: Path) -> None:
    code = (
        "import resource, sys; from stagewire.cli import invoke\n"
        "status = invoke(sys.argv[1:])\n"
        "most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))\n"
        "print(most // 1024, file=sys.stderr); sys.exit(status)"
    )
    # A process inherits the peak of the one it was forked from, so a small shell starts it.
    command = shlex.join([sys.executable, "-c", code, "logs", "summary", "--format", "json", str(large)])
    done = subprocess.run(["sh", "-c", f"{command}; exit $?"], capture_output=True, text=True, check=True, timeout=100)
    assert json.loads(done.stdout)["records"] > 500_000
    assert int(done.stderr) < 190, "MiB of the largest of the processes"


CONFIGS = {
    "quickstart": ("quickstart.yaml", {"sentences", "morse", "tone"}),
    "fan-out": ("fan-out.yaml", {"sentences", "counts", "morse", "table"}),
}


@pytest.mark.parametrize("level", ["info", "debug"])
@pytest.mark.parametrize("name", CONFIGS)
def test_lg1_the_runs_of_the_shipped_configurations_are_understood(name: str, level: str, tmp_path: Path) -> None:
    config, stages = CONFIGS[name]
    log, site = tmp_path / "run.log", tmp_path / "site.yaml"
    site.write_text(f"logging: {{level: {level}, format: json, file: {log}}}\n")
    run = ("run", str(ROOT / "configs" / config), "-c", str(site), "--quiet", "--output", str(tmp_path / "out"))
    text = str(ROOT / "configs" / "quickstart.txt")
    subprocess.run([*PROGRAM, *run, "--input", text], check=True, timeout=60)
    found = analysed(log)
    (pipeline,) = found["pipelines"]
    assert {stage["stage"] for stage in pipeline["stages"]} == stages
    assert (pipeline["ended"], pipeline["failed"], pipeline["unfinished"]) == (1, 0, 0)
    assert all(stage["seconds"]["high"] <= pipeline["seconds"]["high"] + 1e-6 for stage in pipeline["stages"])
    assert all(edge["puts"] > 0 and edge["get_seconds"] is not None for edge in pipeline["edges"])
    assert len(pipeline["edges"]) == len(stages) - (name == "quickstart")
    assert (found["findings"], found["damage"], found["foreign"]) == ([], [], {})


def test_lg2_a_real_csp_run_is_understood(tmp_path: Path) -> None:
    log = tmp_path / "csp.log"
    subprocess.run([sys.executable, "-c", CSP_RUN, str(log)], check=True, timeout=60)
    found = analysed(log)
    (run,) = found["csp"]
    assert (run["finished"], run["balanced"], run["violations"], run["leaks"]) == (True, True, 0, [])
    assert run["pairs"] == 200
    assert run["reports"] >= 3
    assert found["findings"] == []


CSP_RUN = """
import asyncio, itertools, sys
from stagewire import make_logger, LoggingOptions
from stagewire_csp import Capacity, CspRuntime, RunSettings

class Side:
    def __init__(self, count):
        self.numbers = iter(range(count))
    async def open(self, context): ...
    async def close(self): ...

class Producer(Side):
    async def produce(self):
        await asyncio.sleep(0.001)
        try:
            return next(self.numbers)
        except StopIteration:
            raise StopAsyncIteration from None

class Requester(Side):
    async def send(self):
        try:
            return next(self.numbers)
        except StopIteration:
            raise StopAsyncIteration from None
    async def receive(self, ticket):
        await asyncio.sleep(0.005)
        return ticket

class Consumer(Side):
    async def consume(self, t, q):
        await asyncio.sleep(0.001)

async def main():
    log = make_logger(LoggingOptions(level="debug", format="json", file=sys.argv[1]), pipeline="pairs")
    runtime = CspRuntime(
        Producer(200), Requester(200), Consumer(0),
        capacity=Capacity(physical=2, t_slot=8, q_slot=8, q_pending=8, reason="explicit"),
        settings=RunSettings(monitor_interval=0.05), log=log,
    )
    await runtime.run()

asyncio.run(main())
"""


def analysed(log: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*PROGRAM, "logs", "summary", "--format", "json", str(log)], capture_output=True, check=True, timeout=60
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report with every section."""
    requests, csp = tmp_path / "requests.log", tmp_path / "csp.log"
    faults = RequestFaults(failed=frozenset({3}), hung=frozenset({5}), lost_lease=9)
    requests.write_bytes(b"".join(encode(request_run(1, 60, faults))) + b"half a line\n")
    csp.write_bytes(b"".join(encode(csp_run(1, 60, CspFaults(leak_t=3, stall=(20, 31), starve_t=(40, 50))))))
    path = tmp_path / "report.html"
    subprocess.run([*PROGRAM, "logs", "report", "-o", str(path), str(requests), str(csp)], check=True, timeout=60)
    return path


@pytest.fixture
def axe() -> str:
    """The source of axe-core."""
    return resources.files("axe_core_python").joinpath("axe.min.js").read_text()


@pytest.fixture
def chromium(unavailable: Unavailable) -> str:
    """The browser."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return found or unavailable("no Chromium: apt-get install chromium")


PROBE = """
const size = {width: document.documentElement.scrollWidth, seen: innerWidth, high: innerHeight, at: {}};
for (const card of document.querySelectorAll('.card'))
    size.at[card.firstChild.textContent] = card.getBoundingClientRect().bottom;
axe.run().then(found => {
    const out = document.createElement('pre');
    out.id = 'found';
    out.textContent = JSON.stringify({size, violations: found.violations.map(v => [v.id, v.nodes.map(n => n.html)])});
    document.body.append(out);
});
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("window", ["1100,800", "500,900"], ids=["desk", "phone"])
def test_lg5_the_report_passes_axe_and_shows_what_counts_first(
    report: Path, axe: str, chromium: str, scheme: str, window: str
) -> None:
    page = report.read_text().replace('<meta http-equiv="Content-Security-Policy"', '<meta name="policy"')
    probed = report.with_name("probed.html")
    probed.write_text(page.replace("</body>", f"<script>{axe}</script><script>{PROBE}</script></body>"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={report.parent / 'profile'}"]
    options += [f"--window-size={window}", "--virtual-time-budget=30000", "--dump-dom"]
    options += ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    done = subprocess.run(
        [chromium, *options, probed.as_uri()], capture_output=True, text=True, check=True, timeout=100
    )
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stderr[-2000:]
    found = json.loads(html.unescape(match[1]))
    assert found["violations"] == []
    assert found["size"]["width"] <= found["size"]["seen"], "nothing is cut off at the side"
    assert found["size"]["at"]["first error"] < found["size"]["high"], "seen without scrolling"
    assert found["size"]["at"]["slowest stage"] < found["size"]["high"], "seen without scrolling"
