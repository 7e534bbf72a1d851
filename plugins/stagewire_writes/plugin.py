"""Registers the pipeline kind ``write-session`` and its commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stagewire import Pipeline, Problem, Provider, did_you_mean, hookimpl
from stagewire_writes.options import WritesOptions

if TYPE_CHECKING:
    import click

    from stagewire import BuildContext
    from stagewire_writes.pipeline import WritePipeline


def make_pipeline(options: WritesOptions, context: BuildContext) -> WritePipeline:
    """Build the pipeline; opens nothing."""
    from stagewire_writes.pipeline import WritePipeline  # noqa: PLC0415 — only who runs one needs it

    return WritePipeline(options, context)


def check(options: WritesOptions, _catalog: object) -> Iterator[Problem]:
    """Find what the model cannot see: a place to put to in an export that there is not."""
    if options.put is None:
        return
    export, _slash, path = options.put.partition("/")
    if export not in options.exports:
        hint = did_you_mean(export, options.exports)
        yield Problem(f"{export!r} is no export{hint}", ("put",))
    elif not path:
        yield Problem(f"{options.put!r} names no file: EXPORT/PATH", ("put",))


@hookimpl
def stagewire_pipelines() -> list[Provider[Pipeline]]:
    """Offer ``pipeline: write-session``."""
    return [
        Provider(
            name="write-session",
            summary="Files of any size to agents that own directory trees: bounded memory, whole files or none.",
            options=WritesOptions,
            factory=make_pipeline,
            check=check,
        )
    ]


@hookimpl
def stagewire_commands() -> list[click.Command]:
    """Offer ``agent``, ``put``, ``get``, ``ls``, ``stat`` and ``rm``."""
    from stagewire_writes.commands import COMMANDS  # noqa: PLC0415 — takes click, which only the program needs

    return list(COMMANDS)
