"""Registers the pipeline kind ``orchestrator``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stagewire import BuildContext, Pipeline, Provider, hookimpl
from stagewire_orchestrator.check import check
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.pipeline import OrchestratorPipeline
from stagewire_orchestrator.remote.command import command
from stagewire_orchestrator.remote.demands import check_backends


def make_pipeline(options: OrchestratorOptions, context: BuildContext) -> OrchestratorPipeline:
    """Build the pipeline; opens nothing."""
    return OrchestratorPipeline(options, context)


@hookimpl
def stagewire_pipelines() -> Sequence[Provider[Pipeline]]:
    """Offer ``pipeline: orchestrator``."""
    return (
        Provider(
            name="orchestrator",
            summary="Carries requests across a graph of stages, in batches or chunk by chunk.",
            options=OrchestratorOptions,
            factory=make_pipeline,
            check=check,
            check_backends=check_backends,
        ),
    )


@hookimpl
def stagewire_commands() -> Sequence[click.Command]:
    """Offer ``stagewire worker``."""
    return (command,)
