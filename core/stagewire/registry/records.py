"""What is known about one plugin after discovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stagewire.spec.provider import Axis


class PluginState(StrEnum):
    """What became of a plugin. Where several hold, the first in this order is the state."""

    BLOCKED = "blocked"
    """Refused by a list before it was imported."""
    BROKEN = "broken"
    """It could not be imported or is not a valid plugin: nothing of it is used."""
    CONFLICT = "conflict"
    """A name of its own was taken already; its other names are used."""
    NEEDS_EXTRA = "needs-extra"
    """A provider of its own lacks an optional install; the others are used."""
    LOADED = "loaded"
    """All of it can be used."""


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """One plugin and its state.

    Attributes:
        name: The name of its entry point.
        distribution: What ``pip`` calls the package that brought it; empty for a plugin that the program handed over.
        version: That package's version; empty when it is not known.
        target: What the entry point names, such as ``stagewire_echo.plugin``.
        state: What became of it.
        reasons: Why it is not (wholly) usable and what to do, one sentence or two each.
        error: The original error of a broken plugin.
        providers: The names that it declared on each axis, usable or not. Unknown for what was not imported.
        commands: The names of the commands that it declared.
    """

    name: str
    distribution: str
    version: str
    target: str
    state: PluginState
    reasons: tuple[str, ...] = ()
    error: BaseException | None = None
    providers: Mapping[Axis, tuple[str, ...]] = field(default_factory=dict)
    commands: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Where it comes from, for a person: distribution and version."""
        return f"{self.distribution} {self.version}".strip() or "given by the program"

    def __str__(self) -> str:
        return f"plugin {self.name!r} ({self.origin})"
