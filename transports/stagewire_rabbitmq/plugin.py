"""The plugin: transport ``rabbitmq``, and the commands ``stagewire rabbitmq``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagewire import BuildContext, Extra, Provider, Transport, hookimpl
from stagewire_rabbitmq.options import RabbitMQOptions

if TYPE_CHECKING:
    import click


def make_transport(options: RabbitMQOptions, context: BuildContext) -> Transport:
    """Build the transport; connects when it is opened."""
    from stagewire_rabbitmq.transport import RabbitMQTransport  # noqa: PLC0415 — pika is only loaded when it is used

    return RabbitMQTransport(options, clock=context.clock, log=context.log)


@hookimpl
def stagewire_commands() -> Sequence[click.Command]:
    from stagewire_rabbitmq.commands import group  # noqa: PLC0415 — only the program needs it

    return [group]


@hookimpl
def stagewire_transports() -> Sequence[Provider[Transport]]:
    return [
        Provider(
            name="rabbitmq",
            summary="RabbitMQ: stages on many machines, confirmed and acknowledged.",
            options=RabbitMQOptions,
            factory=make_transport,
            capabilities=frozenset({"claims"}),
            extra=Extra("rabbitmq", ("pika",)),
        )
    ]
