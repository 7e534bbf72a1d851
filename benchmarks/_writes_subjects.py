"""The subjects of the benchmark of writes: client processes, agents, and the services that they need."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis

HERE = Path(__file__).resolve().parent
CONFIGS = HERE.parent / "configs"
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
