"""What stages in other processes ask of the transport; found when the file is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stagewire import Problem, Provider
from stagewire_orchestrator.config import OrchestratorOptions

IN_PROCESS = "in-process"
"""The capability of a transport that no other process reaches."""


def unfit(transport: Provider[Any]) -> bool:
    """Return whether no other process reaches what the transport carries."""
    return IN_PROCESS in transport.capabilities


def check_backends(options: OrchestratorOptions, backends: Mapping[Any, Provider[Any]]) -> Iterator[Problem]:
    """Yield a fault for each place that wants a stage in another process, which the transport does not reach."""
    transport = backends["transports"]
    if not unfit(transport):
        return
    message = (
        f"other processes cannot be reached over the transport {transport.name!r}: use another, such as"
        " `transport: {use: rabbitmq, url: …}`, or workers: in-process"
    )
    if options.workers != "in-process":
        yield Problem(message, ("workers",))
    for name, block in options.stages.items():
        if block.workers not in (None, "in-process"):
            yield Problem(message, ("stages", name, "workers"))
