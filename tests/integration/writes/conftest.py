"""Agents and clients in processes of their own, over a broker and a Redis that may be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest
import redis

from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis

CONFIG = """
version: 1
pipeline: write-session
exports:
  files: {{root: {root}}}
agents: separate
session: {{frame: 256KiB, batch: 1MiB, window: 8MiB, heartbeat: 0.5, idle: 3, control_timeout: 30}}
keys: {{ttl: 12, cadence: 1}}
snapshot: 1
transport: {{use: rabbitmq, url: "{amqp}"}}
kv: {{use: redis, url: "{redis}"}}
lease: {{use: redis, url: "{redis}"}}
logging: {{level: warning}}
"""


class Fleet:
    """An export, an agent for it, and clients."""

    def __init__(self, folder: Path, amqp: str, redis_url: str) -> None:
        self.folder = folder
        self.root = folder / "files"
        self.redis_url = redis_url
        self.config = folder / "fleet.yaml"
        self.config.write_text(CONFIG.format(root=self.root, amqp=amqp, redis=redis_url))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._feeders: list[threading.Thread] = []
        self.start_agent()

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-m", "stagewire", *arguments], stderr=subprocess.PIPE, **options)
        self._processes.append(process)
        return process

    def start_agent(self) -> None:
        log = (self.folder / "agent.log").open("ab")
        command = [sys.executable, "-m", "stagewire", "agent", str(self.config), "--export", "files", "--node", "n"]
        with log:
            self.agent = subprocess.Popen(command, stderr=log)
        self._processes.append(self.agent)

    def put(self, file: Path, path: str = "x") -> subprocess.Popen[bytes]:
        return self.start("put", str(file), f"files/{path}", "-c", str(self.config))

    def put_slowly(self, file: Path) -> subprocess.Popen[bytes]:
        """Put what is fed to the client little by little; returns once the session is open, or the client has ended."""
        client = self.start("put", "-", "files/x", "-c", str(self.config), stdin=subprocess.PIPE)
        pipe, client.stdin = client.stdin, None
        assert pipe is not None
        self._feeders.append(threading.Thread(target=_feed, args=(pipe, file)))
        self._feeders[-1].start()
        staging = self.root / ".stagewire"
        self._eventually(lambda: client.poll() is not None or any(staging.glob("*.part")), 60)
        return client

    def end(self, process: subprocess.Popen[bytes]) -> tuple[int, str]:
        _out, errors = process.communicate(timeout=60)
        return process.returncode, errors.decode()

    def must_put(self, file: Path, path: str = "x") -> None:
        """Put, and again until it succeeds: what was killed needs a moment to be back."""
        deadline = time.monotonic() + 60
        while True:
            status, errors = self.end(self.put(file, path))
            if status == 0:
                return
            assert time.monotonic() < deadline, errors
            assert "error:" in errors
            assert "unexpected" not in errors
            time.sleep(0.5)

    def content(self) -> bytes | None:
        path = self.root / "x"
        return path.read_bytes() if path.exists() else None

    def settled(self) -> None:
        """Nothing is left once leases and idle sessions have ended."""
        client = redis.Redis.from_url(self.redis_url)
        try:
            self._eventually(lambda: not list(client.scan_iter("*:v:write-*")), 20)
        finally:
            client.close()
        self._eventually(lambda: not list((self.root / ".stagewire").iterdir()), 20)

    def _eventually(self, holds: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "something was left behind"
            time.sleep(0.02)

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
        for feeder in self._feeders:
            feeder.join()


def _feed(pipe: IO[bytes], file: Path) -> None:
    """Feed for about a second, to a client that may be killed meanwhile."""
    content = file.read_bytes()
    with suppress(BrokenPipeError), pipe:
        for at in range(0, len(content), 1 << 20):
            pipe.write(content[at : at + (1 << 20)])
            pipe.flush()
            time.sleep(0.04)


@pytest.fixture
def fleet(tmp_path: Path, amqp_url: str, mortal_redis: PrivateRedis) -> Iterator[Fleet]:
    yield from _fleet(tmp_path, amqp_url, mortal_redis)


@pytest.fixture
def fleet_of_mortals(tmp_path: Path, mortal_rabbitmq: PrivateRabbitMQ, mortal_redis: PrivateRedis) -> Iterator[Fleet]:
    """A fleet whose broker belongs to the test."""
    yield from _fleet(tmp_path, mortal_rabbitmq.url, mortal_redis)


def _fleet(folder: Path, amqp: str, server: PrivateRedis) -> Iterator[Fleet]:
    made = Fleet(folder, amqp, server.url)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """An old and a new file of 24 MiB."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(os.urandom(1 << 20) * 24)
    new.write_bytes(os.urandom(1 << 20) * 24)
    return old, new
