"""``stagewire rabbitmq``: what a pipeline declares on its broker, and how to be rid of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import click

from stagewire import ConfigError, Problem, fallback_logger, traffic_of
from stagewire_rabbitmq.options import RabbitMQOptions
from stagewire_rabbitmq.topology import Queue, all_queues, grant_queue, reply_queue

F = TypeVar("F", bound=Callable[..., Any])


class Program(Protocol):
    """What the ``stagewire`` program gives to a command."""

    app: Any

    def load(self, config: str, overlays: Sequence[str]) -> Any: ...


def _config(function: F) -> F:
    overlay = click.option(
        "-c", "--config", "overlays", metavar="FILE", multiple=True, help="Lay this file over CONFIG. May be repeated."
    )
    return click.argument("config", metavar="CONFIG", type=click.Path())(overlay(function))


@click.group("rabbitmq")
def group() -> None:
    """Look at and remove what a pipeline declares on RabbitMQ."""


@group.command("topology")
@_config
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def topology(program: Program, config: str, overlays: tuple[str, ...], *, as_json: bool) -> None:
    """Print the queues that CONFIG declares, with their arguments. Connects to nothing."""
    options, queues = _queues(program, config, overlays)
    passing = [make(options, "*") for make in (grant_queue, reply_queue)]
    if as_json:
        shown = {"queues": queues, "of_each_process": passing}
        click.echo(json.dumps({key: [_as_data(queue) for queue in each] for key, each in shown.items()}, indent=2))
        return
    for queue in queues:
        click.echo(_line(queue))
    if not queues:
        click.echo("CONFIG names no edge or mailbox that goes over the broker")
    click.echo("of each process that is connected:")
    for queue in passing:
        click.echo(_line(queue))


@group.command("purge")
@_config
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def purge(program: Program, config: str, overlays: tuple[str, ...], *, yes: bool) -> None:
    """Delete the queues of CONFIG and what is left in them. Asks first.

    A run that is going on declares its queues again, but loses what was in them.
    """
    from stagewire_rabbitmq.broker import visit  # noqa: PLC0415 — pika is only loaded when it is used

    options, queues = _queues(program, config, overlays)
    with visit(options, fallback_logger()) as broker:
        existing = broker.existing(queues)
    if not existing:
        click.echo("nothing is left: none of the pipeline's queues exists")
        return
    for each in existing:
        click.echo(f"{each.queue.name}  messages={each.messages} consumers={each.consumers}")
    messages = sum(each.messages for each in existing)
    if not yes and not click.confirm(f"Delete {len(existing)} queues with {messages} messages?"):
        click.echo("nothing was deleted")
        return
    with visit(options, fallback_logger()) as broker:
        broker.delete([each.queue for each in existing])
    click.echo(f"deleted {len(existing)} queues with {messages} messages")


def _queues(program: Program, config: str, overlays: Sequence[str]) -> tuple[RabbitMQOptions, list[Queue]]:
    loaded = program.load(config, overlays)
    options = loaded.transport.options
    if not isinstance(options, RabbitMQOptions):
        problem = f"the transport is {loaded.transport.use!r}: write use: rabbitmq to send over RabbitMQ"
        raise ConfigError([Problem(f"{config}: {problem}", ("transport", "use"))])
    return options, all_queues(options, traffic_of(program.app.build(loaded)))


def _line(queue: Queue) -> str:
    arguments = " ".join(f"{name}={json.dumps(value)}" for name, value in queue.arguments.items())
    return f"{queue.name}  durable {arguments}"


def _as_data(queue: Queue) -> dict[str, Any]:
    return {"name": queue.name, "durable": True, "arguments": queue.arguments}
