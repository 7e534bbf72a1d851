"""The fault proxy against a real echo server on the loopback address."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from stagewire.testing.services import FaultProxy


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while block := self.request.recv(65536):
            self.request.sendall(block)


class EchoServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that the proxy reset is what the tests are about."""


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    with EchoServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with FaultProxy(server.server_address[1]) as running:
                yield running
        finally:
            server.shutdown()
            thread.join()


def connect(proxy: FaultProxy, timeout: float = 5) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=timeout)


def is_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_bytes_pass_unchanged(proxy: FaultProxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"hello")
        assert connection.recv(5) == b"hello"


def test_cut_ends_open_connections_and_lets_new_ones_through(proxy: FaultProxy) -> None:
    with connect(proxy) as connection:
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        proxy.cut()
        assert is_ended(connection)
    with connect(proxy) as connection:
        connection.sendall(b"b")
        assert connection.recv(1) == b"b"


def test_half_open_swallows_until_it_is_lifted(proxy: FaultProxy) -> None:
    with connect(proxy, timeout=0.2) as connection:
        proxy.half_open()
        connection.sendall(b"late")
        with pytest.raises(TimeoutError):
            connection.recv(4)
        proxy.half_open(on=False)
        connection.settimeout(5)
        assert connection.recv(4) == b"late"


def test_refuse_ends_new_connections_at_once(proxy: FaultProxy) -> None:
    proxy.refuse()
    with connect(proxy) as connection:
        assert is_ended(connection)


def test_a_dead_target_ends_the_client_instead_of_hanging() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with FaultProxy(port) as proxy, connect(proxy) as connection:
        assert is_ended(connection)
