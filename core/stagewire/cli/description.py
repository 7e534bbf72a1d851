"""Plugins and what they offer, in words and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stagewire.cli.schema_text import option_lines, options_schema
from stagewire.errors import PluginError
from stagewire.registry import AXES, Catalog, Entry, PluginRecord, noun
from stagewire.spec.provider import Axis
from stagewire.suggest import did_you_mean

INDENT = "    "


@dataclass(frozen=True, slots=True)
class Description:
    """The same thing for a program and for a person."""

    data: Any
    lines: Sequence[str]


def plugin_lines(plugins: Iterable[PluginRecord]) -> Iterator[str]:
    """Give a line for each plugin, and beneath it one for each reason why it is not wholly usable."""
    plugins = list(plugins)
    widest = max((len(plugin.name) for plugin in plugins), default=0)
    for plugin in plugins:
        yield f"{plugin.name:<{widest}}  {plugin.state:<11}  {plugin.origin}"
        yield from (INDENT + reason for reason in plugin.reasons)


def plugin_data(plugin: PluginRecord) -> dict[str, Any]:
    """Return a record JSON-able."""
    return {
        "name": plugin.name,
        "state": str(plugin.state),
        "distribution": plugin.distribution,
        "version": plugin.version,
        "target": plugin.target,
        "reasons": list(plugin.reasons),
        "providers": {axis: list(names) for axis, names in plugin.providers.items()},
        "commands": list(plugin.commands),
    }


def find(catalog: Catalog, name: str) -> Description:
    """Describe every plugin and every provider that is called ``name``. Raises `PluginError` when there is none."""
    plugins = [_of_plugin(plugin) for plugin in catalog.plugins() if plugin.name == name]
    providers = [_of_entry(axis, entry) for axis, entry in _entries(catalog) if entry.provider.name == name]
    found = plugins + providers
    if not found:
        known = {plugin.name for plugin in catalog.plugins()} | {
            each.provider.name for _axis, each in _entries(catalog)
        }
        raise PluginError(
            f"no plugin or provider is called {name!r}{did_you_mean(name, known)}; see `stagewire plugins`"
        )
    lines = [line for each in found for line in (*each.lines, "")]
    return Description([each.data for each in found], lines[:-1])


def _entries(catalog: Catalog) -> Iterator[tuple[Axis, Entry]]:
    for axis in AXES:
        yield from ((axis, entry) for entry in catalog.declared(axis))


def _of_plugin(plugin: PluginRecord) -> Description:
    offered = [f"{noun(axis):<16}{', '.join(names)}" for axis, names in plugin.providers.items()]
    commands = [f"{'command':<16}{', '.join(plugin.commands)}"] if plugin.commands else []
    head = (f"plugin {plugin.name}", f"{'state':<16}{plugin.state}", f"{'from':<16}{plugin.origin}, {plugin.target}")
    lines = [head[0], *(INDENT + line for line in (*head[1:], *offered, *commands, *plugin.reasons))]
    return Description({"what": "plugin", **plugin_data(plugin)}, lines)


def _of_entry(axis: Axis, entry: Entry) -> Description:
    provider = entry.provider
    schema = options_schema(provider.options)
    lines = [
        f"{noun(axis)} {provider.name}",
        INDENT + provider.summary,
        f"{INDENT}{'from':<16}{entry.plugin}",
        *([f"{INDENT}{'can':<16}{', '.join(sorted(provider.capabilities))}"] if provider.capabilities else []),
        *([INDENT + entry.lacks] if entry.lacks else []),
        *(INDENT + line for line in option_lines(schema)),
    ]
    data = {
        "what": noun(axis),
        "axis": axis,
        "name": provider.name,
        "summary": provider.summary,
        "plugin": entry.plugin.name,
        "usable": entry.lacks is None,
        "lacks": entry.lacks,
        "capabilities": sorted(provider.capabilities),
        "options": schema,
    }
    return Description(data, lines)
