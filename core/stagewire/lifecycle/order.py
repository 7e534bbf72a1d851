"""The order of a shutdown (SD-5), in the one place that knows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from stagewire.lifecycle.dependents import Dependents
from stagewire.lifecycle.phases import Phases, Step
from stagewire.lifecycle.signal import StopSignal
from stagewire.lifecycle.tasks import TaskRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A part of a framework and what it does at each point of the shutdown; ``None`` where it does nothing.

    Attributes:
        name: What it is called, in messages too.
        prepare: Closes its own admission. The public service is still there.
        before: Runs after the stop was published and before any module shuts down.
        shutdown: Lets go of everything.
    """

    name: str
    prepare: Step | None = None
    before: Step | None = None
    shutdown: Step | None = None


def shutdown_phases(
    name: str,
    *,
    stop: StopSignal,
    modules: Sequence[Module],
    tasks: TaskRegistry,
    dependents: Dependents | None = None,
    reason: str = "shutdown",
    grace: float = 5.0,
) -> Phases:
    """Build the phases of a shutdown in the order of SD-5.

    Dependents stop → each module prepares → the stop is published → each module's ``before`` → each module's
    ``shutdown``, one by one → the registry is closed and joined. Modules go in the order given, so the one that uses
    another comes first.

    Args:
        name: The whole, for messages.
        stop: The signal to publish.
        modules: In the order of their shutdown.
        tasks: Joined at the end; what does not heed the signal within ``grace`` seconds is cancelled.
        dependents: Who stops first, if anybody depends on this.
        reason: Why, for the signal and the dependents; a reason that was given before wins.
        grace: Seconds that tasks have to end, and once more after their cancellation.
    """

    async def publish() -> None:
        stop.set(reason)

    steps: list[tuple[str, Step]] = []
    if dependents is not None:
        steps.append(("dependents", partial(dependents.stopped, reason)))
    steps += _steps("prepare", modules)
    steps.append(("stop", publish))
    steps += _steps("before", modules)
    steps += _steps("shutdown", modules)
    steps.append(("tasks", partial(tasks.drain, grace)))
    return Phases(name, steps)


def _steps(hook: str, modules: Sequence[Module]) -> Iterator[tuple[str, Step]]:
    for module in modules:
        step: Step | None = getattr(module, hook)
        if step is not None:
            yield f"{hook} {module.name}", step
