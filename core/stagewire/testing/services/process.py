"""One child process that is a service: started, waited for, frozen, killed, started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stagewire.errors import StagewireError


class ServiceUnavailable(StagewireError):
    """The service cannot be had on this machine; the message says what to install."""


def free_port() -> int:
    """Return a TCP port of the loopback address that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_program(*candidates: str, remedy: str) -> str:
    """Return the first of the programs that is installed. Raises `ServiceUnavailable` with the remedy."""
    for candidate in candidates:
        found = shutil.which(candidate)
        if found is not None:
            return found
    raise ServiceUnavailable(f"none of {', '.join(candidates)} is installed: {remedy}")


class ServiceProcess:
    """A child in a process group of its own, its output in ``directory/output.log``."""

    def __init__(self, command: Sequence[str], directory: Path, environ: Mapping[str, str] | None = None) -> None:
        self.command = tuple(command)
        self.directory = directory
        self.environ = dict(os.environ if environ is None else environ)
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the child has been started and has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        """The child's process id."""
        assert self._child is not None, "the service was not started"
        return self._child.pid

    def start(self, ready: Callable[[], bool], *, deadline: float) -> None:
        """Start the child and wait until ``ready()``. Raises `ServiceUnavailable` with the end of its output."""
        with (self.directory / "output.log").open("ab") as log:
            self._child = subprocess.Popen(  # noqa: S603 — the command is made here, from installed programs
                self.command,
                cwd=self.directory,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        ends = time.monotonic() + deadline
        while not ready():
            if not self.running or time.monotonic() > ends:
                self.kill()
                raise ServiceUnavailable(f"{self.command[0]} did not become ready: {self.output()[-1500:]}")
            time.sleep(0.02)

    def output(self) -> str:
        """Return what the child has printed."""
        return (self.directory / "output.log").read_text(errors="replace")

    def pause(self) -> None:
        """Freeze the child: connections stay open and nothing answers."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen child go on."""
        os.killpg(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the whole process group at once (SIGKILL) and collect it. Idempotent."""
        if self._child is None:
            return
        if self.running:
            os.killpg(self.pid, signal.SIGKILL)
        self._child.wait()
        self._child = None


def answers(port: int, question: bytes, answer: bytes) -> bool:
    """Return whether the port answers ``question`` with something that begins with ``answer`` within a second."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.settimeout(1)
            connection.sendall(question)
            return connection.recv(len(answer)) == answer
    except OSError:
        return False
