"""Registers the pipeline kind ``csp``."""

from __future__ import annotations

from collections.abc import Iterator

from stagewire import INPUT_DIRECTORY, BuildContext, Pipeline, Problem, Provider, StageBlock, hookimpl
from stagewire_csp.capacity import PROFILES, no_such_profile
from stagewire_csp.host import host_limits
from stagewire_csp.options import CspOptions
from stagewire_csp.pipeline import CspPipeline

CAPABILITIES = {"t": "csp.producer", "q": "csp.requester", "c": "csp.consumer"}
"""What the provider of each role must say that it can be."""


def make_pipeline(options: CspOptions, context: BuildContext) -> CspPipeline:
    """Build the pipeline; opens nothing. Reads what the host allows, once."""
    return CspPipeline(options, options.capacity.decide(host_limits()), context)


def check(options: CspOptions, _catalog: object) -> Iterator[Problem]:
    """Find what the model cannot see: a profile that there is not, a stage that is none of the roles."""
    profile = options.capacity.profile
    if profile is not None and profile not in PROFILES:
        yield Problem(no_such_profile(profile), ("capacity", "profile"))
    blocks: dict[str, StageBlock] = {"t": options.t, "q": options.q, "c": options.c}
    for name, block in blocks.items():
        needed = CAPABILITIES[name]
        if needed not in block.provider.capabilities:
            yield Problem(f"{block.use!r} is no {needed}: choose a stage with that capability", (name, "use"))


@hookimpl
def stagewire_pipelines() -> list[Provider[Pipeline]]:
    """Offer ``pipeline: csp``."""
    return [
        Provider(
            name="csp",
            summary="Paired resources: local work makes T, requests bring Q, each pair is consumed; nothing leaks.",
            options=CspOptions,
            factory=make_pipeline,
            capabilities=frozenset({INPUT_DIRECTORY}),
            check=check,
        )
    ]
