"""pika's exceptions, mapped at the border to stagewire's, each with a remedy and without a secret."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import pika
from pika import exceptions as amqp
from pika.adapters.utils import connection_workflow as workflow

from stagewire import Permanent, Retryable, TransportError

_PERMANENT_REPLIES = {
    403: "the broker refused access: check the user's permissions on the virtual host",
    404: "it does not exist on the broker",
    406: "it exists with other arguments: delete it on the broker or set the options back",
    530: "the virtual host does not exist, or the user may not use it: create it or correct the URL",
}

_PASSING = ("timed out", "unknown delivery tag")
"""What a 406 says that a new channel mends: the broker's consumer_timeout passed, or a tag was of another channel."""


def where(parameters: pika.connection.Parameters) -> str:
    """Name the broker without its password."""
    return f"RabbitMQ at {parameters.host}:{parameters.port}, virtual host {parameters.virtual_host!r}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it wraps, outermost first; pika wraps several layers deep and in its own way."""
    seen: list[BaseException] = [error]
    while seen:
        current = seen.pop(0)
        yield current
        if isinstance(current, workflow.AMQPConnectionWorkflowFailed):
            seen.extend(current.exceptions[-1:])
        elif isinstance(current, workflow.AMQPConnectorPhaseErrorBase):
            seen.append(current.exception)
        elif isinstance(current, amqp.AMQPConnectionError):
            seen.extend(part for part in current.args if isinstance(part, BaseException))


def map_fault(error: BaseException, parameters: pika.connection.Parameters) -> TransportError:
    """Return the stagewire error for one of pika's: what happened, where, and what to do."""
    if isinstance(error, TransportError):
        return error
    for cause in _causes(error):
        fault = _known(cause, where(parameters))
        if fault is not None:
            fault.__cause__ = error
            return fault
    fault = Retryable(f"{where(parameters)}: the connection failed ({type(error).__name__}: {error})")
    fault.__cause__ = error
    return fault


def _known(cause: BaseException, place: str) -> TransportError | None:
    """Map one cause; ``None`` for what says nothing by itself."""
    if isinstance(cause, amqp.ConnectionClosedByBroker | amqp.ChannelClosedByBroker):
        passing = any(words in str(cause.reply_text) for words in _PASSING)
        remedy = None if passing else _PERMANENT_REPLIES.get(cause.reply_code)
        text = f"{place}: the broker answered {cause.reply_code} {cause.reply_text}"
        return Permanent(f"{text}; {remedy}") if remedy else Retryable(text)
    for kinds, kind, text in _KNOWN:
        if isinstance(cause, kinds):
            return kind(f"{place}: {text.format(cause=cause)}")
    return None


_KNOWN: tuple[tuple[tuple[type[BaseException], ...], type[TransportError], str], ...] = (
    (
        (amqp.ProbableAuthenticationError, amqp.AuthenticationError),
        Permanent,
        "wrong user name or password: correct the transport's url",
    ),
    ((amqp.ProbableAccessDeniedError,), Permanent, _PERMANENT_REPLIES[530]),
    (
        (ssl.SSLError, amqp.ProtocolSyntaxError, amqp.IncompatibleProtocolError),
        Permanent,
        "no TLS or AMQP handshake ({cause}): amqps:// needs the TLS port (5671), amqp:// the plain one (5672)",
    ),
    (
        (amqp.ConnectionOpenAborted, workflow.AMQPConnectorStackTimeout, TimeoutError),
        Retryable,
        "no answer in time: is it an AMQP port, is the broker overloaded, is TLS expected?",
    ),
    ((socket.gaierror,), Permanent, "the host name is not known: correct the transport's url"),
    (
        (ConnectionRefusedError,),
        Retryable,
        "nothing listens there: start the broker or correct the transport's url",
    ),
    ((OSError, amqp.StreamLostError, amqp.AMQPHeartbeatTimeout), Retryable, "the connection was lost ({cause})"),
)
"""The first row whose kinds fit says what it is; subclasses stand before their bases."""
