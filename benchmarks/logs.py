"""`stagewire logs summary` beside jq, Python's json in a loop and lnav, over one generated log; all in one run.

The peers count records by level and event and, as the summary does, collect the seconds of each stage. Each subject is
a process of its own; memory is that of its whole process tree (proportional set size, sampled).

    python benchmarks/logs.py [--quick] [--size MIB]

1 GiB by default; ``--size 5120`` is the 5 GiB of LG-7.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from _table import Row, show
from stagewire_logs.testing import Stopwatch, encode, request_run

MIB = 1024 * 1024
LOOP = """
import json, statistics, sys
from collections import Counter
counts, stages = Counter(), {}
for line in sys.stdin.buffer:
    record = json.loads(line)
    counts[record["level"], record["event"]] += 1
    if record["event"] == "stage.ended":
        stages.setdefault(record["stage"], []).append(record["seconds"])
print(counts, {stage: statistics.quantiles(values, n=100)[94] for stage, values in stages.items()})
"""
JQ = """
reduce inputs as $r ({}; .["\\($r.level) \\($r.event)"] += 1
  | if $r.event == "stage.ended" then .seconds[$r.stage] += $r.seconds else . end)
"""
OURS = (sys.executable, "-m", "stagewire", "logs", "summary", "--format", "json")
PEER_LOOP, PEER_JQ = "Python json loop", "jq"


@dataclass(frozen=True, slots=True)
class Run:
    """One subject's run."""

    seconds: float
    cpu: float
    memory: float


def make_log(path: Path, size: int) -> int:
    """Write a log of at least so many bytes; returns its lines."""
    watch, lines, seed = Stopwatch(), 0, 0
    with path.open("wb") as file:
        while file.tell() < size:
            block = b"".join(encode(request_run(seed, 20_000, watch=watch)))
            lines += block.count(b"\n")
            file.write(block)
            seed += 1
    return lines


def run(command: tuple[str, ...], stdin: Path | None = None) -> Run:
    """Run a command to its end."""
    before = os.times()
    began = time.perf_counter()
    with (stdin or Path(os.devnull)).open("rb") as source, tempfile.TemporaryFile() as out:
        with subprocess.Popen(command, stdin=source, stdout=out, stderr=subprocess.DEVNULL) as program:
            sampler = Memory(program.pid)
            sampler.start()
            status = program.wait()
            sampler.done.set()
            sampler.join()
        assert status == 0, f"{command[0]} ended with {status}"
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(time.perf_counter() - began, cpu, sampler.most / MIB)


class Memory(threading.Thread):
    """Samples the memory of a process and all its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.done = threading.Event()
        self.most = 0
        self._pid = pid

    def run(self) -> None:
        while not self.done.wait(0.05):
            self.most = max(self.most, sum(proportional(pid) for pid in tree(self._pid)))


def tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield pid
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from tree(int(child))


def proportional(pid: int) -> int:
    """Return a process's proportional set size in bytes; 0 once it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def subjects(log: Path, folder: Path) -> Iterator[tuple[str, tuple[str, ...], Path | None]]:
    """Yield name, command and standard input of each subject that there is here."""
    yield "stagewire logs", (*OURS, str(log)), None
    yield "stagewire logs, one process", (*OURS, "--processes", "1", str(log)), None
    yield PEER_LOOP, (sys.executable, "-c", LOOP), log
    if shutil.which("jq"):
        yield PEER_JQ, ("jq", "-n", "-c", JQ, str(log)), None
    if shutil.which("lnav"):
        query = ";SELECT log_level, count(*) FROM all_logs GROUP BY log_level"
        yield "lnav", ("lnav", "-n", "-c", query, str(log)), None
    packed = folder / "app.log.gz"
    with log.open("rb") as source, gzip.open(packed, "wb", compresslevel=1) as target:
        shutil.copyfileobj(source, target, MIB)
    yield "stagewire logs, gzip", (*OURS, str(packed)), None
    if zstd := shutil.which("zstd"):
        subprocess.run((zstd, "-q", "-1", str(log), "-o", str(folder / "app.log.zst")), check=True)
        yield "stagewire logs, zstd", (*OURS, str(folder / "app.log.zst")), None


def measure(quick: bool, size: int | None = None) -> list[Row]:  # noqa: FBT001 — the same call for every benchmark
    """Return speed, CPU time and memory of every subject, and the ratio of the speed to the peers'."""
    wanted = (size or (64 if quick else 1024)) * MIB
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "app.log"
        lines = make_log(log, wanted)
        mib = log.stat().st_size / MIB
        runs = {name: run(command, stdin) for name, command, stdin in subjects(log, Path(directory))}
    return [row for name in runs for row in rows_of(name, runs, mib, lines)]


def rows_of(name: str, runs: dict[str, Run], mib: float, lines: int) -> Iterator[Row]:
    """Yield the figures of one subject; ours with their ratios to the peers'."""
    found = runs[name]
    peers = [peer for peer in (PEER_LOOP, PEER_JQ) if name.startswith("stagewire") and peer in runs]
    if not peers:
        yield Row(f"speed, {name}", mib / found.seconds, "MiB/s")
        yield Row(f"CPU time, {name}", found.cpu, "s")
    for peer in peers:
        yield Row(f"speed, {name}", mib / found.seconds, "MiB/s", peer, runs[peer].seconds / found.seconds)
    for peer in peers:
        yield Row(f"CPU time, {name}", found.cpu, "s", peer, found.cpu / runs[peer].cpu)
    yield Row(f"speed, {name}", lines / found.seconds, "lines/s")
    yield Row(f"most memory, {name}", found.memory, "MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description="log analysis beside jq, a Python loop and lnav")
    parser.add_argument("--quick", action="store_true", help="a small log")
    parser.add_argument("--size", type=int, metavar="MIB", help="size of the log; default 1024")
    options = parser.parse_args()
    show("log analysis", measure(options.quick, options.size))


if __name__ == "__main__":
    main()
