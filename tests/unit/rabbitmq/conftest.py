"""A wire and a channel without a broker: what is done on them is written down, and answered when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from pika import spec

from stagewire import TransportError
from stagewire_rabbitmq.publisher import Publisher


@dataclass
class Published:
    """One message on its way to the broker."""

    tag: int
    queue: str
    body: bytes
    properties: Any


class FakeChannel:
    """Takes what is published and declared; `ack`, `nack` and `give_back` are the broker's answers."""

    def __init__(self) -> None:
        self.is_open = True
        self.published: list[Published] = []
        self.declared: list[str] = []
        self.acked: list[tuple[int, bool]] = []
        self.nacked: list[int] = []
        self.answer_declarations = True
        self.deliver: Callable[..., None] = lambda *_args: None
        self.cancelled: Callable[[Any], None] = lambda _frame: None
        self._confirmed: Callable[[Any], None] = lambda _frame: None
        self._returned: Callable[..., None] = lambda *_args: None

    def confirm_delivery(self, confirmed: Callable[[Any], None]) -> None:
        self._confirmed = confirmed

    def add_on_return_callback(self, returned: Callable[..., None]) -> None:
        self._returned = returned

    def add_on_cancel_callback(self, cancelled: Callable[[Any], None]) -> None:
        self.cancelled = cancelled

    def basic_qos(self, **_options: Any) -> None: ...

    def queue_declare(self, name: str, *, callback: Callable[[Any], None], **_options: Any) -> None:
        self.declared.append(name)
        if self.answer_declarations:
            callback(SimpleNamespace(method=SimpleNamespace(message_count=0)))

    def basic_publish(self, _exchange: str, queue: str, body: bytes, properties: Any, *, mandatory: bool) -> None:
        assert mandatory, "a message that no queue takes must come back"
        self.published.append(Published(len(self.published) + 1, queue, body, properties))

    def basic_consume(self, _queue: str, deliver: Callable[..., None]) -> str:
        self.deliver = deliver
        return "consumer"

    def basic_cancel(self, _consumer: str) -> None: ...

    def basic_ack(self, tag: int, *, multiple: bool = False) -> None:
        self.acked.append((tag, multiple))

    def basic_nack(self, tag: int, *, requeue: bool) -> None:
        assert requeue
        self.nacked.append(tag)

    def arrive(self, tag: int, body: bytes = b"", *, redelivered: bool = False) -> None:
        """Deliver a message to the consumer."""
        method = SimpleNamespace(delivery_tag=tag, redelivered=redelivered)
        self.deliver(self, method, SimpleNamespace(headers=None, reply_to=None), body)

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self._confirmed(SimpleNamespace(method=spec.Basic.Ack(tag, multiple)))

    def nack(self, tag: int, *, multiple: bool = False) -> None:
        self._confirmed(SimpleNamespace(method=spec.Basic.Nack(tag, multiple)))

    def give_back(self, tag: int) -> None:
        """Return an unroutable message, and confirm it, as the broker does."""
        properties = SimpleNamespace(message_id=self.published[tag - 1].properties.message_id)
        self._returned(self, None, properties, b"")
        self.ack(tag)


@dataclass
class FakeWire:
    """Runs what is called at once, and what is called later when the test says so."""

    fault: TransportError | None = None
    blocked: bool = False
    blocked_seconds: float = 0.0
    sessions: list[Any] = field(default_factory=list)
    timers: list[Callable[[], None]] = field(default_factory=list)

    def add(self, session: Any) -> None:
        self.sessions.append(session)

    def call(self, work: Callable[[], None]) -> None:
        work()

    def later(self, _delay: float, work: Callable[[], None]) -> None:
        self.timers.append(work)

    def run_timers(self) -> None:
        due, self.timers = self.timers, []
        for work in due:
            work()

    def connect(self) -> Any:
        """Give every session a new channel; returns the last one."""
        self.fault = None
        channel: Any = None
        for session in self.sessions:
            channel = FakeChannel()
            session.up(channel)
        return channel

    def lose(self, fault: TransportError) -> None:
        """Lose the connection."""
        self.fault = fault
        for session in self.sessions:
            session.down(fault)


@pytest.fixture
def wire() -> Any:
    return FakeWire()


@pytest.fixture
def publisher(wire: Any) -> Publisher:
    return Publisher(wire)
