"""``stagewire worker``."""

from __future__ import annotations

from typing import Any

import click


@click.command("worker")
@click.argument("config", metavar="CONFIG", type=click.Path())
@click.option(
    "-c",
    "--config",
    "overlays",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="Lay this file over CONFIG, as `stagewire run` does. May be repeated.",
)
@click.option("--stage", required=True, metavar="NAME", help="The stage to host.")
@click.option(
    "--replica", type=click.IntRange(min=0), metavar="NUMBER", help="Host this replica only; they count from 0."
)
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    metavar="N",
    help="Host so many of its replicas, from --replica (or 0) on.  [default: all, or the one that --replica names]",
)
@click.option(
    "--deadline",
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="How long a stop may take before it is forced.",
)
@click.option("--scope", hidden=True, help="What the mailboxes and edges are called by; the pipeline's name.")
@click.option("--until-eof", is_flag=True, hidden=True, help="Stop when standard input ends.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Host a stage of a pipeline whose other stages run elsewhere.

    CONFIG is the file that `stagewire run` has there, with `workers: external` and a transport to other processes.
    SIGTERM and Ctrl-C let the requests inside end, then the worker leaves.
    """
    from stagewire_orchestrator.remote.hosting import host  # noqa: PLC0415 — takes time that `--help` need not pay

    context.exit(host(context.obj, **options))
