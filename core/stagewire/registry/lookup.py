"""The errors of looking a name up: what was asked for, the likely cause, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagewire.errors import PluginError, bounded
from stagewire.registry.records import PluginRecord, PluginState
from stagewire.registry.wording import listed
from stagewire.suggest import did_you_mean

MAX_SUSPECTS = 5
"""The most broken plugins that a message lists."""

MAX_COMPLAINT = 300
"""Characters on each, so that what follows is read too."""


def not_found(
    kind: str, name: str, known: Iterable[str], plugins: Sequence[PluginRecord], owner: PluginRecord | None
) -> PluginError:
    """Return the error for a name that nothing usable has.

    Args:
        kind: What was looked for: ``stage``.
        name: Its name.
        known: The names that there are.
        plugins: All plugins.
        owner: The plugin that would offer it but cannot be used; its error becomes the cause.
    """
    if owner is not None:
        return _caused(PluginError(f"{kind} {name!r} cannot be used: {_complaint(owner)}"), owner)
    broken = [plugin for plugin in plugins if plugin.state is PluginState.BROKEN]
    blocked = [plugin.name for plugin in plugins if plugin.state is PluginState.BLOCKED]
    names = sorted(known)
    parts = [
        f"no {kind} is called {name!r}{did_you_mean(name, names)}",
        _likely_cause(broken),
        f"not imported, by a block or allow list: {listed(blocked)}" if blocked else "",
        f"installed: {listed(names)}" if names else f"no {kind} is installed",
        "" if broken else "install the plugin that offers it; `stagewire plugins` lists those here",
    ]
    return _caused(PluginError("; ".join(part for part in parts if part)), *broken[:1])


def find_owner(name: str, declaring: Iterable[PluginRecord], plugins: Iterable[PluginRecord]) -> PluginRecord | None:
    """Find the unusable plugin that declared the name or, its names being unknown, is called like its first word."""
    namesakes = [plugin for plugin in plugins if plugin.name == name.partition(".")[0]]
    unusable = [plugin for plugin in (*declaring, *namesakes) if plugin.state in _UNUSABLE]
    return next(iter(unusable), None)


_UNUSABLE = (PluginState.BROKEN, PluginState.BLOCKED)


def _likely_cause(broken: Sequence[PluginRecord]) -> str:
    if not broken:
        return ""
    more = f"; and {len(broken) - MAX_SUSPECTS} more" if len(broken) > MAX_SUSPECTS else ""
    complaints = "; ".join(bounded(_complaint(plugin), MAX_COMPLAINT) for plugin in broken[:MAX_SUSPECTS])
    return f"likely cause: {complaints}{more}"


def _complaint(plugin: PluginRecord) -> str:
    return f"{plugin} is {plugin.state}: {' '.join(plugin.reasons)}"


def _caused(error: PluginError, *plugins: PluginRecord) -> PluginError:
    error.__cause__ = next((plugin.error for plugin in plugins), None)
    return error
