"""Write sessions: put and get of 4 KiB to 1 GiB over the three configurations, beside what copies files otherwise.

Ours: embedded, to an agent over RabbitMQ and shared memory, and to an agent over RabbitMQ and Redis; payloads by
reference and raw. The peers: ``cp``; ``rsync`` where it is installed; a bare asyncio socket sink that checksums and
writes; and confirmed durable aio-pika messages of at most 1 MiB, which nobody writes anywhere. Clients, agents and sink
are processes of their own. CPU counts client and agent together, broker and Redis each by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from _processes import forget_peak, peak_bytes, session_cpu
from _table import Row, show
from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis

HERE = Path(__file__).resolve().parent
CONFIGS = HERE.parent / "configs"
KIB, MIB, GIB = 1024, 1024**2, 1024**3
SIZES = {"4 KiB": 4 * KIB, "1 MiB": MIB, "8 MiB": 8 * MIB, "64 MiB": 64 * MIB, "1 GiB": GIB}
MOST_FILES = 500
SINK, COPY, RSYNC, MESSAGES = "socket sink", "cp", "rsync", "aio-pika messages"
EMBEDDED, SHM, REDIS = "embedded", "shm", "redis"
BROKER = "broker"
PAYLOADS = ("reference", "raw")
AGENT = (sys.executable, "-m", "stagewire", "agent", "--export", "files", "--node", "bench")
OVERLAY = """
exports: {{files: {{root: "{root}"}}}}
session: {{payload: {payload}}}
"""


@dataclass(frozen=True)
class Load:
    """What is carried: so many copies of a file, so many at a time."""

    source: Path
    size: int
    files: int
    parallel: int

    def request(self) -> dict[str, str | int]:
        return {"source": str(self.source), "files": self.files, "parallel": self.parallel}


@dataclass
class Subject:
    """One way to carry files: a client process, and what else works for it.

    Attributes:
        root: Where put files are.
        ops: What it can do: put, get.
        helpers: Sessions whose CPU and memory are counted as the agent's.
        servers: Sessions whose CPU is counted by itself, by their names.
        peers: The names of those that it is compared with.
    """

    client: subprocess.Popen[str]
    root: Path
    ops: Sequence[str] = ("put", "get")
    helpers: Sequence[int] = ()
    servers: Mapping[str, int] = field(default_factory=dict)
    peers: Sequence[str] = ()

    def carry(self, op: str, load: Load, folder: Path) -> float:
        """Carry files; returns the seconds."""
        assert self.client.stdin is not None
        assert self.client.stdout is not None
        request = {"op": op, "folder": str(folder), **load.request()}
        print(json.dumps(request), file=self.client.stdin, flush=True)
        answer = self.client.stdout.readline()
        if not answer:
            raise RuntimeError(f"the client has ended with status {self.client.wait()}")
        return float(json.loads(answer))


@dataclass
class Figures:
    """What the rounds of one subject took."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def note(self, unit: str, value: float) -> None:
        self.values.setdefault(unit, []).append(value)


class Bench:
    """The services and the subjects, all below one scratch directory."""

    def __init__(self, stack: ExitStack, only: Callable[[str], bool]) -> None:
        self._stack = stack
        self._only = only
        self.folder = Path(stack.enter_context(TemporaryDirectory()))
        self._shm = stack.enter_context(TemporaryDirectory(dir="/dev/shm"))
        self._broker = stack.enter_context(PrivateRabbitMQ())
        self._redis = stack.enter_context(PrivateRedis())
        self.subjects: dict[str, Subject] = {}

    def open(self) -> None:
        """Start every subject that is wanted and can be had, and say which cannot."""
        if self._only(SINK):
            self._open_sink()
        self._open_command(COPY, "cp")
        self._open_command(RSYNC, "rsync", "--whole-file")
        if self._only(MESSAGES):
            self._open_messages()
        self._open_embedded()
        self._open_separate(SHM, "write-session-shm.yaml", {BROKER: self._broker.process.pid})
        servers = {BROKER: self._broker.process.pid, "Redis": self._redis.process.pid}
        self._open_separate(REDIS, "write-session-rabbitmq.yaml", servers)

    def _open_messages(self) -> None:
        if missing := [name for name in ("aio_pika", "aiormq", "faststream") if find_spec(name) is None]:
            print(f"{MESSAGES}: {', '.join(missing)} not installed")
        else:
            client = self._client("aio-pika", self._broker.make_vhost("messages"))
            self.subjects[MESSAGES] = Subject(client, self.folder, ("put",), servers={BROKER: self._broker.process.pid})

    def _open_sink(self) -> None:
        sink = self._start([sys.executable, str(HERE / "_writes_sink.py")])
        assert sink.stdout is not None
        client = self._client("sink", sink.stdout.readline().strip())
        self.subjects[SINK] = Subject(client, self._root(SINK), ("put",), [sink.pid])

    def _open_command(self, name: str, program: str, *options: str) -> None:
        if not self._only(name):
            return
        if shutil.which(program) is None:
            print(f"{name}: {program} is not installed")
            return
        self.subjects[name] = Subject(self._client("command", program, *options), self._root(name))

    def _open_embedded(self) -> None:
        for payload in self._payloads(EMBEDDED):
            root, overlay = self._overlay(f"{EMBEDDED}, {payload}", payload, "")
            client = self._client("ours", str(CONFIGS / "write-session.yaml"), str(overlay))
            self.subjects[f"{EMBEDDED}, {payload}"] = Subject(client, root, peers=[SINK, COPY])

    def _open_separate(self, name: str, config: str, servers: Mapping[str, int]) -> None:
        for payload in self._payloads(name):
            label = f"{name}, {payload}"
            store = f'{{directory: "{self._shm}", name: {payload}}}'
            stores = f"kv: {store}\nlease: {store}\n" if name == SHM else ""
            root, overlay = self._overlay(label, payload, stores)
            environ = {
                "STAGEWIRE_AMQP_URL": self._broker.make_vhost(label.replace(", ", "-")),
                "STAGEWIRE_REDIS_URL": f"{self._redis.url.rsplit('/', 1)[0]}/{PAYLOADS.index(payload)}",
            }
            files = [str(CONFIGS / config), str(overlay)]
            agent = self._start([*AGENT, files[0], "-c", files[1]], environ)
            client = self._client("ours", *files, environ=environ)
            self.subjects[label] = Subject(client, root, ("put", "get"), [agent.pid], servers, [SINK, COPY, MESSAGES])

    def _payloads(self, name: str) -> list[str]:
        return [payload for payload in PAYLOADS if self._only(f"{name}, {payload}")]

    def _overlay(self, label: str, payload: str, more: str) -> tuple[Path, Path]:
        root = self._root(label)
        overlay = root.with_suffix(".yaml")
        overlay.write_text(OVERLAY.format(root=root, payload=payload) + more)
        return root, overlay

    def _root(self, label: str) -> Path:
        root = self.folder / label.replace(", ", "-").replace(" ", "-")
        root.mkdir()
        return root

    def _client(self, *arguments: str, environ: dict[str, str] | None = None) -> subprocess.Popen[str]:
        client = self._start([sys.executable, str(HERE / "_writes_client.py"), *arguments], environ)
        assert client.stdout is not None
        if client.stdout.readline() != "ready\n":
            raise RuntimeError(f"the client {' '.join(arguments)} has ended with status {client.wait()}")
        return client

    def _start(self, command: list[str], environ: dict[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._stack.callback(_end, process)
        return process


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=30)


def once(subject: Subject, op: str, load: Load, folder: Path, figures: Figures) -> None:
    """Carry files once and note what it took."""
    pids = [subject.client.pid, *subject.helpers]
    for pid in pids:
        forget_peak(pid)
    work, serving = _cpu(pids), {name: session_cpu(pid) for name, pid in subject.servers.items()}
    seconds = subject.carry(op, load, folder)
    size = load.files * load.size
    figures.note("MiB/s", size / MIB / seconds)
    if load.size < MIB:
        figures.note("files/s", load.files / seconds)
    figures.note("CPU s/GiB", (_cpu(pids) - work) / size * GIB)
    for name, pid in subject.servers.items():
        figures.note(f"{name} CPU s/GiB", (session_cpu(pid) - serving[name]) / size * GIB)
    figures.note("client MiB", peak_bytes(subject.client.pid) / MIB)
    for pid in subject.helpers:
        figures.note("agent MiB", peak_bytes(pid) / MIB)


def _cpu(sessions: Sequence[int]) -> float:
    return sum(map(session_cpu, sessions))


def carried(bench: Bench, load: Load, rounds: int) -> Iterator[tuple[str, list[Row]]]:
    """Yield the figures of put and of get: every subject once a round, in turn."""
    found = {op: {name: Figures() for name, subject in bench.subjects.items() if op in subject.ops} for op in OPS}
    back = bench.folder / "back"
    for _round in range(rounds):
        for name, subject in bench.subjects.items():
            for op in subject.ops:
                folder = subject.root if op == "put" else back
                folder.mkdir(exist_ok=True)
                once(subject, op, load, folder, found[op][name])
            for path in (*subject.root.glob("f*"), *back.glob("f*")):
                path.unlink(missing_ok=True)
    for op, figures in found.items():
        yield op, rows_of(bench.subjects, figures)


OPS = ("put", "get")


def rows_of(subjects: dict[str, Subject], figures: dict[str, Figures]) -> list[Row]:
    """Return the medians, ours with a row for each peer."""
    medians = {
        name: {unit: statistics.median(values) for unit, values in found.values.items()}
        for name, found in figures.items()
    }
    rows = []
    for name, found in medians.items():
        for unit, value in found.items():
            peers = {peer: medians.get(peer, {}).get(unit) for peer in subjects[name].peers}
            compared = [Row(name, value, unit, peer, value / other) for peer, other in peers.items() if other]
            rows += compared if compared and not unit.endswith(" MiB") else [Row(name, value, unit)]
    return rows


def measure(
    *, most: int, rounds: int, sizes: Sequence[str], only: Callable[[str], bool]
) -> Iterator[tuple[str, list[Row]]]:
    """Yield the title and the figures of each part; no part carries more than ``most`` bytes."""
    with ExitStack() as stack:
        bench = Bench(stack, only)
        bench.open()
        for label, parallel in product(sizes, (1, 8)):
            size = SIZES[label]
            if size * parallel > most:
                continue
            source = bench.folder / "source"
            source.write_bytes((os.urandom(min(size, MIB))) * max(1, size // MIB))
            files = max(parallel, min(MOST_FILES, most // size))
            for op, rows in carried(bench, Load(source, size, files, parallel), rounds):
                yield f"{op} of {label}, {parallel} at a time", rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one round, and no parts above 64 MiB")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of every part; default: 3")
    parser.add_argument("--size", action="append", choices=list(SIZES), help="only files of this size")
    parser.add_argument("--subject", action="append", metavar="TEXT", help="only subjects whose names have this")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the services and clients as Ctrl-C does
    wanted: list[str] = arguments.subject or [""]
    parts = measure(
        most=64 * MIB if arguments.quick else GIB,
        rounds=1 if arguments.quick else arguments.rounds,
        sizes=arguments.size or list(SIZES),
        only=lambda name: any(text in name for text in wanted),
    )
    for title, rows in parts:
        show(f"Writes: {title}", rows)


if __name__ == "__main__":
    main()
