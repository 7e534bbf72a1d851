"""``stagewire run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from stagewire.cli.options import Command, config_argument, json_option
from stagewire.cli.program import Program, pass_program


@click.command("run", cls=Command)
@config_argument
@click.option(
    "--input",
    "source",
    metavar="PATH",
    help="Feed the pipeline with this file, or with this directory if it takes one; - is standard input.",
)
@click.option(
    "--output",
    metavar="DIR",
    default="out",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Write output files here; made when it is missing.",
)
@json_option("Print one JSON object on standard output, and nothing else there.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
@click.option(
    "--deadline",
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="How long a stop may take before it is forced.",
)
@pass_program
@click.pass_context
def command(context: click.Context, program: Program, /, **options: Any) -> None:
    """Run a pipeline, and print what came of it.

    SIGTERM and Ctrl-C let what is inside end and close everything in order; once more tells what that waits for.
    """
    from stagewire.cli.execution import Request, execute  # noqa: PLC0415 — takes time that `--help` need not pay

    context.exit(execute(program, Request(**options)))
