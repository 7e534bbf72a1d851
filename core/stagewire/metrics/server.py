"""A small HTTP server for scrapes: one thread listens, and each scrape has its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

PATH = "/metrics"

POLL = 0.05
"""Seconds that closing may wait for the listening thread to notice."""

PATIENCE = 5.0
"""Seconds that a client may take to say what it wants."""

Scrape = Callable[[str], tuple[str, bytes]]
"""Takes the Accept header of a request; returns the content type and the text."""


class _Listener(ThreadingMixIn, TCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        self._connections: set[Any] = set()
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End the connections, so that a silent client's thread ends, too."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that hung up."""


class MetricsServer:
    """Answers ``GET /metrics`` from the moment it is made until `close`.

    Args:
        host: Where to listen.
        port: Where to listen; 0 takes a free one.
        scrape: Makes the answer; called in a thread of its own for each request. What it raises is a 503 with the text.

    Raises:
        OSError: It cannot listen there.
    """

    def __init__(self, host: str, port: int, scrape: Scrape) -> None:
        self._listener = _Listener(host, port, _handler(scrape))
        self.port: int = self._listener.server_address[1]
        """Where it listens."""
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(POLL,), name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more, and hang up on who is still there. Takes ``POLL`` seconds at most."""
        self._listener.shutdown()
        self._listener.server_close()
        self._listener.hang_up()
        self._thread.join()


def _handler(scrape: Scrape) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != PATH:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"see {PATH}\n".encode())
                return
            try:
                kind, text = scrape(self.headers.get("Accept", ""))
            except Exception as error:  # noqa: BLE001 — a scrape that fails must not end the server
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", f"{error}\n".encode())
            else:
                self._answer(HTTPStatus.OK, kind, text)

        def _answer(self, status: HTTPStatus, kind: str, text: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the base class's word
            """Say nothing: standard error belongs to the run."""

    return Handler
