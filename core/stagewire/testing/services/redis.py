"""A private Redis (or Valkey) server."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from stagewire.testing.services.process import ServiceProcess, answers, find_program, free_port


class PrivateRedis:
    """A Redis server of the test's own on ``url``, with a unix socket on ``socket_path``; nothing is persisted.

    ``arguments`` are further command-line options, such as ``"--maxmemory", "8mb"``.
    """

    def __init__(self, *arguments: str) -> None:
        program = find_program("redis-server", "valkey-server", remedy="apt-get install redis-server")
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="stagewire-redis-"))
        self.socket_path = self.directory / "redis.sock"
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        place = ("--dir", str(self.directory), "--unixsocket", str(self.socket_path))
        self.process = ServiceProcess((program, *options, *place, *arguments), self.directory)

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> Self:
        """Start, or start again after a kill, and wait until it answers."""
        self.process.start(lambda: answers(self.port, b"PING\r\n", b"+PONG"), deadline=15)
        return self

    def kill(self) -> None:
        """SIGKILL: everything in it is lost."""
        self.process.kill()

    def close(self) -> None:
        """Kill it and remove its directory."""
        self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
