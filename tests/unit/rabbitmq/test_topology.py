"""What is declared, and what is said of the driver's faults."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from typing import Any

import pika
import pytest
from pika import exceptions as amqp
from pika.adapters.utils import connection_workflow as workflow
from pydantic import ValidationError

from stagewire import ChunkLink, Permanent, Retryable, Traffic, TransportError
from stagewire.testing import StubContext
from stagewire_rabbitmq import RabbitMQOptions, make_transport
from stagewire_rabbitmq.faults import map_fault
from stagewire_rabbitmq.topology import all_queues, chunk_queue, dead_queue, grant_queue, mailbox_queue, reply_queue

LINK = ChunkLink("a->b", "a", "b", 2)
PARAMETERS = pika.ConnectionParameters("broker", 5672, "/v", pika.PlainCredentials("user", "hush"))


def options(**values: Any) -> RabbitMQOptions:
    return RabbitMQOptions.model_validate(values)


def test_the_plugin_loads_no_driver() -> None:
    program = (
        "import sys, stagewire_rabbitmq, stagewire_rabbitmq.plugin as plugin\n"
        "plugin.stagewire_transports(), plugin.stagewire_commands()\n"
        "assert 'pika' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_building_a_transport_opens_nothing() -> None:
    transport = make_transport(options(), StubContext())
    assert dict(transport.stats()) == {}


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_tr1_both_ends_declare_the_same_and_everything_expires(kind: str) -> None:
    traffic = Traffic([LINK], ["jobs"])
    queues = all_queues(options(queue_type=kind), traffic)
    assert queues == all_queues(options(queue_type=kind), traffic)
    assert len({queue.name for queue in queues}) == len(queues) == 5
    for queue in [*queues, grant_queue(options(), "me"), reply_queue(options(), "me")]:
        assert queue.arguments["x-expires"] > 0, "unused queues go by themselves"


def test_tr4_one_queue_a_link_never_one_a_request() -> None:
    assert chunk_queue(options(prefix="p"), LINK).name == "p.chunks.a->b.2"
    assert chunk_queue(options(), LINK).arguments["x-single-active-consumer"] is True


def test_tr5_queues_are_bounded_and_refuse_and_dead_letters_lose_their_oldest() -> None:
    for queue in (chunk_queue(options(), LINK), mailbox_queue(options(), "jobs")):
        assert queue.arguments["x-overflow"] == "reject-publish"
        assert queue.arguments["x-max-length-bytes"] > 0
    assert dead_queue(options(), "jobs").arguments["x-overflow"] == "drop-head"
    assert dead_queue(options(), "jobs") == mailbox_queue(options(), "jobs.dead"), "it is read as any mailbox"


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (amqp.ProbableAuthenticationError("x"), Permanent, "wrong user name or password"),
        (amqp.ProbableAccessDeniedError("x"), Permanent, "the virtual host does not exist"),
        (amqp.ConnectionClosedByBroker(530, "NOT_ALLOWED"), Permanent, "530 NOT_ALLOWED; the virtual host"),
        (amqp.ConnectionClosedByBroker(320, "CONNECTION_FORCED"), Retryable, "320 CONNECTION_FORCED"),
        (amqp.ChannelClosedByBroker(406, "PRECONDITION_FAILED - x"), Permanent, "it exists with other arguments"),
        (
            amqp.ChannelClosedByBroker(406, "PRECONDITION_FAILED - delivery ack on channel 1 timed out"),
            Retryable,
            "406",
        ),
        (amqp.ChannelClosedByBroker(403, "ACCESS_REFUSED"), Permanent, "check the user's permissions"),
        (ssl.SSLError("WRONG_VERSION_NUMBER"), Permanent, "amqps:// needs the TLS port"),
        (socket.gaierror(-2, "unknown"), Permanent, "the host name is not known"),
        (ConnectionRefusedError(111, "refused"), Retryable, "nothing listens there"),
        (TimeoutError(), Retryable, "no answer in time"),
        (amqp.StreamLostError("gone"), Retryable, "the connection was lost"),
        (amqp.AMQPHeartbeatTimeout("silent"), Retryable, "the connection was lost"),
        (RuntimeError("unheard of"), Retryable, "the connection failed (RuntimeError: unheard of)"),
    ],
)
def test_faults_of_the_driver_are_named_with_place_and_remedy(
    error: Exception, kind: type[TransportError], said: str
) -> None:
    wrapped = workflow.AMQPConnectionWorkflowFailed([workflow.AMQPConnectorSocketConnectError(error)])
    for each in (error, wrapped):
        fault = map_fault(each, PARAMETERS)
        if each is error or "unheard" not in said:
            assert type(fault) is kind
            assert said in str(fault)
        assert "RabbitMQ at broker:5672, virtual host '/v'" in str(fault)
        assert "hush" not in str(fault)
        assert fault.__cause__ is each


def test_a_url_that_cannot_be_used_is_refused_and_not_quoted() -> None:
    with pytest.raises(ValidationError, match="must begin with amqp"):
        options(url="http://user:hush@broker")
    with pytest.raises(Permanent, match="url cannot be read") as raised:
        make_transport(options(url="amqp://user:hush@broker:port/"), StubContext())
    assert "hush" not in str(raised.value)
    with pytest.raises(Permanent, match="ca_file"):
        make_transport(options(url="amqps://broker/", ca_file="/nowhere.pem"), StubContext())
