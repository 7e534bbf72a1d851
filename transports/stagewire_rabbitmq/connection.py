"""Where to connect to and how, from the options."""

from __future__ import annotations

import ssl

import pika

from stagewire import Permanent
from stagewire_rabbitmq.options import RabbitMQOptions


def connection_parameters(options: RabbitMQOptions) -> pika.URLParameters:
    """Return pika's parameters for the options. Raises `Permanent` for a URL or a certificate that cannot be read."""
    try:
        parameters = pika.URLParameters(options.url.get_secret_value())
    except (ValueError, TypeError) as error:
        raise Permanent(
            f"the transport's url cannot be read ({type(error).__name__}): amqp://user:password@host:port/vhost"
        ) from None
    parameters.heartbeat = options.heartbeat
    parameters.socket_timeout = options.connect_timeout
    parameters.stack_timeout = options.connect_timeout + 0.5
    parameters.connection_attempts = 1
    if options.url.get_secret_value().startswith("amqps://"):
        parameters.ssl_options = pika.SSLOptions(_tls(options), parameters.host)
    return parameters


def _tls(options: RabbitMQOptions) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.client_certificate is not None:
            context.load_cert_chain(options.client_certificate)
    except OSError as error:
        raise Permanent(f"ca_file or client_certificate of the transport cannot be read: {error}") from error
    return context
