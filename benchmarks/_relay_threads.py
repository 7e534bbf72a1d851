"""What people write by hand with threads: pika and kombu."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from typing import Any

import pika
from kombu.connection import Connection
from kombu.entity import Queue
from kombu.messaging import Consumer, Producer

from _relay import PREFETCH, ThreadSubject, headers


class Pika(ThreadSubject):
    """pika's BlockingConnection, one for each thread. It waits for each confirm before it publishes again."""

    name = "pika"

    def open(self, url: str, queues: Sequence[str]) -> None:
        self._connection, self._channel = self._connect(url)
        self._first = queues[0]
        self.start(url, queues)

    @staticmethod
    def _connect(url: str) -> tuple[Any, Any]:
        parameters = pika.URLParameters(url)
        parameters.heartbeat = 0
        connection = pika.BlockingConnection(parameters)
        channel = connection.channel()
        channel.confirm_delivery()
        return connection, channel

    @staticmethod
    def _send(channel: Any, body: bytes, queue: str, identity: Any) -> None:
        properties = pika.BasicProperties(delivery_mode=2, headers=identity)
        channel.basic_publish("", queue, body, properties, mandatory=True)

    def publish(self, body: bytes, request: str, chunk: int) -> None:
        self._send(self._channel, body, self._first, headers(request, chunk))

    def consume(self, url: str, queue: str, following: str | None, ready: threading.Event) -> None:
        connection, channel = self._connect(url)
        channel.queue_declare(queue, durable=True)
        channel.basic_qos(prefetch_count=PREFETCH)

        def handle(_channel: Any, method: Any, properties: Any, body: bytes) -> None:
            if following is not None:
                self._send(channel, body, following, properties.headers)
            channel.basic_ack(method.delivery_tag)
            if following is None:
                self.arrivals.arrived()

        channel.basic_consume(queue, handle)
        ready.set()
        while not self.stopping.is_set():
            connection.process_data_events(0.1)
        connection.close()

    def close(self) -> None:
        self.stop()
        self._connection.close()


class Kombu(ThreadSubject):
    """kombu over py-amqp, with confirms."""

    name = "kombu"

    def open(self, url: str, queues: Sequence[str]) -> None:
        self._connection = self._connect(url)
        self._producer = Producer(self._connection)
        self._first = queues[0]
        self.start(url, queues)

    @staticmethod
    def _connect(url: str) -> Any:
        connection = Connection(url, transport_options={"confirm_publish": True}, heartbeat=0)
        connection.connect()
        return connection

    @staticmethod
    def _send(producer: Any, body: bytes, queue: str, identity: Any) -> None:
        producer.publish(body, routing_key=queue, delivery_mode=2, headers=identity, mandatory=True)

    def publish(self, body: bytes, request: str, chunk: int) -> None:
        self._send(self._producer, body, self._first, headers(request, chunk))

    def consume(self, url: str, queue: str, following: str | None, ready: threading.Event) -> None:
        with self._connect(url) as connection, self._connect(url) as publishing:
            producer = Producer(publishing)  # on one connection, a wait for a confirm takes the next message

            def handle(body: Any, message: Any) -> None:
                if following is not None:
                    self._send(producer, bytes(body), following, message.headers)
                message.ack()
                if following is None:
                    self.arrivals.arrived()

            source = Queue(queue, routing_key=queue, durable=True)
            with Consumer(connection, [source], callbacks=[handle], prefetch_count=PREFETCH):
                ready.set()
                while not self.stopping.is_set():
                    try:
                        connection.drain_events(timeout=0.1)
                    except socket.timeout:  # noqa: UP041 — what py-amqp raises, by its name there
                        continue

    def close(self) -> None:
        self.stop()
        self._connection.release()
