"""What the program says of a broker or a store that cannot be used, and what a pipeline leaves on the broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stagewire import ChunkKey, ChunkLink, Options, Provider, RunReport, Traffic, hookimpl
from stagewire.cli import invoke
from stagewire.testing import StubContext
from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis, free_port
from stagewire_rabbitmq import RabbitMQOptions, make_transport

pytestmark = pytest.mark.integration

EDGE = ChunkLink("a->b", "a", "b")
BOX = "jobs"


class Sends:
    """A pipeline kind that uses one edge and one mailbox, and does nothing with them."""

    def __init__(self, _options: object, context: Any) -> None:
        context.transport(), context.kv(), context.lease()

    def traffic(self) -> Traffic:
        return Traffic([EDGE], [BOX])

    def graph(self) -> str:
        return ""

    async def run(self, _job: Any) -> RunReport:
        return RunReport()

    async def prepare_shutdown(self) -> None:
        pass

    async def shutdown(self) -> None:
        pass


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


Say = Callable[..., Said]


@pytest.fixture
def say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    """Run the program on a configuration whose transport block (and more) is given."""
    plugin: Any = ModuleType("sends_plugin")
    provider: Any = Provider(name="sends", summary="Sends.", options=Options, factory=Sends)
    plugin.stagewire_pipelines = hookimpl(lambda: [provider])

    def run(*command: str, transport: str, more: str = "", options: tuple[str, ...] = ()) -> Said:
        config = tmp_path / "sends.yaml"
        config.write_text(f"version: 1\npipeline: sends\nlogging: {{level: error}}\ntransport: {{{transport}}}\n{more}")
        if command == ("run",):
            options = (*options, "--output", str(tmp_path / "out"))
        status = invoke([*command, str(config), *options], extra_plugins={"sends": plugin})
        return Said(status, *capsys.readouterr())

    return run


def on(url: str, more: str = "") -> str:
    return f"use: rabbitmq, url: '{url}', connect_timeout: 3{more}"


def check_both(say: Say, said: str, *, transport: str, more: str = "") -> None:
    """``doctor --connect`` and ``run`` name the same cause in one line, and exit 2."""
    doctor = say("doctor", transport=transport, more=more, options=("--connect",))
    run = say("run", transport=transport, more=more)
    for answer in (doctor, run):
        assert answer.status == 2, answer
        (line,) = [line for line in answer.err.splitlines() if "error: " in line]
        assert said in line, line
        assert "hush" not in answer.out + answer.err


def node_of(node: PrivateRabbitMQ | None) -> PrivateRabbitMQ:
    if node is None:
        pytest.skip("wrong addresses are made from that of a private broker")
    return node


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("amqp://guest:hush-wrong@127.0.0.1:{port}/%2F", "wrong user name or password"),
        ("amqp://guest:guest@127.0.0.1:{port}/missing", "the virtual host does not exist"),
        ("amqp://guest:hush@127.0.0.1:{closed}/%2F", "nothing listens there"),
        ("amqp://guest:hush@no-such-host.invalid/%2F", "the host name is not known"),
        ("amqps://guest:hush@127.0.0.1:{port}/%2F", "no TLS or AMQP handshake"),
    ],
    ids=["password", "virtual host", "no broker", "host", "TLS"],
)
def test_a_broker_that_cannot_be_used_is_named(
    say: Say, rabbitmq_node: PrivateRabbitMQ | None, address: str, said: str
) -> None:
    url = address.format(port=node_of(rabbitmq_node).port, closed=free_port())
    check_both(say, said, transport=on(url))


def test_a_queue_with_other_arguments_is_named_with_both(say: Say, amqp_url: str) -> None:
    declare(amqp_url, expires=60)
    check_both(say, "received '61000' but current is '60000'", transport=on(amqp_url, ", expires: 61"))


def test_an_alarm_is_named(say: Say, mortal_rabbitmq: PrivateRabbitMQ) -> None:
    mortal_rabbitmq.set_memory_alarm(on=True)
    check_both(say, "memory or disk alarm", transport=on(mortal_rabbitmq.url))


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ([("REPLICAOF", "127.0.0.1", "1")], "read-only replica: name the primary"),
        ([("CONFIG", "SET", "maxmemory", "1")], "it is full (maxmemory)"),
    ],
    ids=["read-only", "full"],
)
def test_a_redis_that_takes_no_writes_is_named(
    say: Say, mortal_redis: PrivateRedis, commands: list[tuple[str, ...]], said: str
) -> None:
    import redis  # noqa: PLC0415 — only where Redis is there

    with redis.Redis.from_url(mortal_redis.url) as client:
        for command in commands:
            client.execute_command(*command)
    stores = "".join(f"{block}: {{use: redis, url: '{mortal_redis.url}'}}\n" for block in ("kv", "lease"))
    doctor = say("doctor", transport="use: local", more=stores, options=("--connect",))
    run = say("run", transport="use: local", more=stores)
    for answer in (doctor, run):
        assert answer.status == 2, answer
        assert said in answer.err


def test_the_doctor_says_what_answers_and_leaves_nothing(say: Say, amqp_url: str) -> None:
    answer = say("doctor", transport=on(amqp_url), options=("--connect",))
    assert answer.status == 0, answer
    assert "transport 'rabbitmq': RabbitMQ at 127.0.0.1:" in answer.out
    assert "answers and takes messages; 0 of 5 queues exist" in answer.out
    assert say("run", transport=on(amqp_url)).status == 0


def test_topology_prints_what_is_declared_without_connecting(say: Say) -> None:
    nowhere = on(f"amqp://guest:hush@127.0.0.1:{free_port()}/%2F")
    shown = say("rabbitmq", "topology", transport=nowhere)
    assert shown.status == 0, shown
    assert "stagewire.chunks.a->b.0  durable x-expires=86400000" in shown.out
    data = json.loads(say("rabbitmq", "topology", transport=nowhere, options=("--json",)).out)
    assert [queue["name"] for queue in data["queues"]] == [
        "stagewire.chunks.a->b.0",
        "stagewire.chunks.a->b.0.parked",
        "stagewire.mailbox.jobs",
        "stagewire.mailbox.a->b.dead",
        "stagewire.mailbox.jobs.dead",
    ]
    assert [queue["name"] for queue in data["of_each_process"]] == ["stagewire.grants.*", "stagewire.replies.*"]


def test_topology_of_another_transport_is_refused(say: Say) -> None:
    answer = say("rabbitmq", "topology", transport="use: local")
    assert answer.status == 2
    assert "the transport is 'local'" in answer.err


def test_purge_asks_and_then_removes_what_a_run_left(say: Say, amqp_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(amqp_url)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt: "n")
    assert "nothing was deleted" in say("rabbitmq", "purge", transport=on(amqp_url)).out
    kept = say("rabbitmq", "purge", transport=on(amqp_url), options=("--yes",))
    assert kept.status == 0, kept
    assert "stagewire.chunks.a->b.0  messages=1 consumers=0" in kept.out
    assert "deleted 3 queues with 1 messages" in kept.out
    assert "nothing is left" in say("rabbitmq", "purge", transport=on(amqp_url), options=("--yes",)).out


def declare(url: str, **options: Any) -> None:
    """Declare the edge's queues, and leave one chunk in them."""

    async def main() -> None:
        transport = make_transport(RabbitMQOptions.model_validate({"url": url, **options}), StubContext())
        await transport.open()
        try:
            face = transport.chunks(EDGE)
            await asyncio.to_thread(face.put, ChunkKey("r", "a", 0), {"data": 0, "finished": False})
        finally:
            await transport.close()

    asyncio.run(main())
