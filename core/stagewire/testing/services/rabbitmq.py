"""A private RabbitMQ node, with its own epmd, so that several run side by side and each may be killed.

The server is run by the script beside its libraries, not by the wrapper in ``sbin``: the wrapper changes user and hides
the process. With ``-detached`` semantics of our own the child *is* the broker, so SIGKILL hits it and nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stagewire.testing.services.process import ServiceProcess, answers, find_program, free_port

_PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
_REMEDY = "apt-get install rabbitmq-server"


class PrivateRabbitMQ:
    """A RabbitMQ node of the test's own: ``url``, management API on ``management_port``, user ``guest``.

    ``settings`` are further lines of ``rabbitmq.conf``. Starting takes 5 to 8 seconds and about 150 MiB.
    """

    def __init__(self, *settings: str) -> None:
        self.server = find_program("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server", remedy=_REMEDY)
        self.port, self.management_port, self._epmd_port, distribution = (free_port() for _ in range(4))
        self.directory = Path(tempfile.mkdtemp(prefix="stagewire-rabbitmq-"))
        self.node = f"stagewire{self.port}@localhost"
        self.environ = self._environment(distribution)
        self._write_files(settings)
        epmd = find_program("epmd", *map(str, Path("/usr/lib/erlang").glob("erts*/bin/epmd")), remedy=_REMEDY)
        self._epmd = ServiceProcess(
            (epmd, "-port", str(self._epmd_port), "-address", "127.0.0.1"), self._subdirectory("epmd"), self.environ
        )
        self.process = ServiceProcess((self.server,), self.directory, self.environ)

    def _subdirectory(self, name: str) -> Path:
        path = self.directory / name
        path.mkdir(exist_ok=True)
        return path

    def _environment(self, distribution_port: int) -> dict[str, str]:
        own = {
            "HOME": str(self.directory),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_CONF_ENV_FILE": str(self.directory / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self._subdirectory("mnesia")),
            "RABBITMQ_LOG_BASE": str(self._subdirectory("log")),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(self._subdirectory("generated")),
            "RABBITMQ_PID_FILE": str(self.directory / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 +sbwt none",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RABBITMQ_")}
        return kept | own

    def _write_files(self, settings: tuple[str, ...]) -> None:
        cookie = self.directory / ".erlang.cookie"
        cookie.write_text(f"STAGEWIRE{self.port}")
        cookie.chmod(0o400)
        (self.directory / "rabbitmq-env.conf").touch()
        (self.directory / "enabled_plugins").write_text("[rabbitmq_management].\n")
        lines = (
            f"management.tcp.port = {self.management_port}",
            "management.tcp.ip = 127.0.0.1",
            "vm_memory_high_watermark.absolute = 2GB",
            "disk_free_limit.absolute = 50MB",
            "log.console = false",
            *settings,
        )
        (self.directory / "rabbitmq.conf").write_text("\n".join(lines) + "\n")

    @property
    def url(self) -> str:
        """The URL of the default virtual host."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def start(self) -> Self:
        """Start, or start again after a kill, and wait until AMQP and the management API answer."""
        if not self._epmd.running:
            self._epmd.start(self._epmd_listens, deadline=15)
        self.process.start(self._ready, deadline=90)
        return self

    def _epmd_listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._epmd_port), timeout=1).close()
        except OSError:
            return False
        return True

    def _ready(self) -> bool:
        return answers(self.port, _PROTOCOL_HEADER, b"\x01") and self._management_answers()

    def _management_answers(self) -> bool:
        try:
            self.api("GET", "overview")
        except OSError:
            return False
        return True

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Call the management API under ``/api/``; returns the decoded answer, ``None`` when it is empty.

        Raises:
            OSError: The node does not answer, or refuses (`urllib.error.HTTPError`).
        """
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.management_port}/api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 — see above
            content = answer.read()
        return json.loads(content) if content else None

    def make_vhost(self, name: str) -> str:
        """Make a virtual host for one test and return its URL."""
        self.api("PUT", f"vhosts/{name}", {})
        self.api("PUT", f"permissions/{name}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
        return f"amqp://guest:guest@127.0.0.1:{self.port}/{name}"

    def drop_vhost(self, name: str) -> None:
        """Delete a virtual host with all that is in it."""
        self.api("DELETE", f"vhosts/{name}")

    def control(self, *arguments: str) -> str:
        """Run ``rabbitmqctl`` against this node (about two seconds) and return what it printed."""
        program = Path(self.server).with_name("rabbitmqctl")
        command = (str(program), "--node", self.node, *arguments)
        finished = subprocess.run(  # noqa: S603 — the installed program, arguments of the test's own
            command, env=self.environ, check=True, capture_output=True, text=True, timeout=60
        )
        return finished.stdout

    def set_memory_alarm(self, *, on: bool) -> None:
        """Raise or clear the memory alarm: publishers are blocked while it is on."""
        self.control("set_vm_memory_high_watermark", *(["0.0000001"] if on else ["absolute", "2GB"]))

    def cut_connections(self) -> int:
        """Close every client connection from the broker's side; returns how many."""
        connections = self.api("GET", "connections")
        for connection in connections:
            self.api("DELETE", f"connections/{urllib.parse.quote(connection['name'], safe='')}")
        return len(connections)

    def kill(self) -> None:
        """SIGKILL the broker; its data stays and `start` brings it back.

        A quorum queue killed within about a second of its declaration can lose its log: wait 1.5 s after declaring.
        """
        self.process.kill()

    def close(self) -> None:
        """Kill the broker and its epmd, and remove its directory."""
        self.process.kill()
        self._epmd.kill()
        for _attempt in range(5):
            shutil.rmtree(self.directory, ignore_errors=True)
            if not self.directory.exists():
                break
            time.sleep(0.1)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
