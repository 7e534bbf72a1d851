"""A connection whose other end says nothing."""

from __future__ import annotations

import socket
import threading
import time

import pika

from stagewire import fallback_logger
from stagewire_rabbitmq.wire import Wire


def test_tr11_closing_while_a_silent_broker_is_waited_for_ends_the_thread() -> None:
    """It took the connection and never answers the handshake: there is nothing to close in order."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        parameters = pika.URLParameters(f"amqp://guest:guest@127.0.0.1:{listener.getsockname()[1]}/%2F")
        parameters.stack_timeout = 600
        wire = Wire("silent", parameters, time.monotonic, fallback_logger())
        wire.start()
        taken, _ = listener.accept()
        with taken:
            assert taken.recv(8) == b"AMQP\x00\x00\x09\x01"
            wire.close(0.2)
    assert "stagewire-rabbitmq-silent" not in [thread.name for thread in threading.enumerate()]
