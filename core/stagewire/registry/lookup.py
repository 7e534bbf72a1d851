"""The errors of looking a provider up: what was asked for, the likely cause, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagewire.errors import PluginError
from stagewire.registry.admission import Entry
from stagewire.registry.axes import noun
from stagewire.registry.records import PluginRecord, PluginState
from stagewire.registry.wording import listed
from stagewire.spec.provider import Axis
from stagewire.suggest import did_you_mean

MAX_SUSPECTS = 5
"""The most broken plugins that a message lists."""


def lacks_extra(axis: Axis, entry: Entry) -> PluginError:
    """Return the error for a provider whose optional install is missing."""
    return PluginError(f"{noun(axis)} {entry.lacks}")


def not_found(axis: Axis, name: str, known: Iterable[str], plugins: Sequence[PluginRecord]) -> PluginError:
    """Return the error for a name that nothing usable has. Its cause is the error of the plugin that would have it."""
    owner = _owner(axis, name, plugins)
    if owner is not None:
        return _caused(PluginError(f"{noun(axis)} {name!r} cannot be used: {_complaint(owner)}"), owner)
    broken = [plugin for plugin in plugins if plugin.state is PluginState.BROKEN]
    blocked = [plugin.name for plugin in plugins if plugin.state is PluginState.BLOCKED]
    names = sorted(known)
    parts = [
        f"no {noun(axis)} is called {name!r}{did_you_mean(name, names)}",
        f"installed: {listed(names)}" if names else f"no {noun(axis)} is installed",
        _likely_cause(broken),
        f"not imported, by a block or allow list: {listed(blocked)}" if blocked else "",
        "" if broken else "install the plugin that offers it; `stagewire plugins` lists those here",
    ]
    return _caused(PluginError("; ".join(part for part in parts if part)), *broken[:1])


def _owner(axis: Axis, name: str, plugins: Sequence[PluginRecord]) -> PluginRecord | None:
    """Find the unusable plugin that declared the name or, its names being unknown, is called like its first word."""
    hiding = [plugin for plugin in plugins if plugin.state in (PluginState.BROKEN, PluginState.BLOCKED)]
    declaring = [plugin for plugin in hiding if name in plugin.providers.get(axis, ())]
    namesakes = [plugin for plugin in hiding if plugin.name == name.partition(".")[0]]
    return next(iter(declaring + namesakes), None)


def _likely_cause(broken: Sequence[PluginRecord]) -> str:
    if not broken:
        return ""
    more = f"; and {len(broken) - MAX_SUSPECTS} more" if len(broken) > MAX_SUSPECTS else ""
    return "likely cause: " + "; ".join(_complaint(plugin) for plugin in broken[:MAX_SUSPECTS]) + more


def _complaint(plugin: PluginRecord) -> str:
    return f"{plugin} is {plugin.state}: {' '.join(plugin.reasons)}"


def _caused(error: PluginError, *plugins: PluginRecord) -> PluginError:
    error.__cause__ = next((plugin.error for plugin in plugins), None)
    return error
