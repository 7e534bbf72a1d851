"""Plugins and what they offer, in words and as data."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagewire.cli.schema_text import option_lines, options_schema
from stagewire.cli.tables import INDENT, width
from stagewire.errors import PluginError
from stagewire.registry import AXES, Catalog, Entry, PluginRecord, noun
from stagewire.spec.provider import Axis
from stagewire.suggest import did_you_mean

MOST_HINTS = 5
"""Names that a hint lists."""


@dataclass(frozen=True, slots=True)
class Description:
    """The same thing for a program and for a person."""

    data: Any
    lines: Sequence[str]


def plugin_lines(plugins: Iterable[PluginRecord], among: Iterable[PluginRecord] = ()) -> Iterator[str]:
    """Give a line for each plugin, and beneath it one for each reason why it is not wholly usable.

    The columns are wide enough for those ``among`` which they stand.
    """
    plugins = list(plugins)
    widest = max((len(plugin.name) for plugin in (*plugins, *among)), default=0)
    for plugin in plugins:
        yield f"{plugin.name:<{widest}}  {plugin.state:<11}  {plugin.origin}"
        yield from (INDENT + reason for reason in plugin.reasons)


def listing(catalog: Catalog) -> Iterator[str]:
    """Give the lines of every plugin, and beneath it one for each thing that it offers."""
    entries = list(_entries(catalog))
    widest = max((len(entry.provider.name) for _axis, entry in entries), default=0)
    for plugin in catalog.plugins():
        yield from plugin_lines([plugin], catalog.plugins())
        for axis, entry in entries:
            if entry.plugin == plugin:
                what, summary = noun(axis), entry.lacks or entry.provider.summary
                yield from wrapped(f"{INDENT}{what:<15}{entry.provider.name:<{widest}}  ", summary)
        if plugin.commands:
            yield from wrapped(f"{INDENT}{'commands':<15}", ", ".join(plugin.commands))


def wrapped(head: str, text: str) -> list[str]:
    """Return the text behind its head, in lines of the terminal's width."""
    return textwrap.wrap(text, width(), initial_indent=head, subsequent_indent=" " * len(head)) or [head.rstrip()]


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
            f"no plugin or provider is called {name!r}{_near(name, known)}; `stagewire plugins` lists them all"
        )
    lines = [line for each in found for line in (*each.lines, "")]
    return Description([each.data for each in found], lines[:-1])


def _near(name: str, known: set[str]) -> str:
    """Return a hint: the names that hold this one, else the one that is spelt like it."""
    holding = sorted(each for each in known if name.casefold() in each.casefold()) if name else []
    if not holding:
        return did_you_mean(name, known)
    return f"; did you mean {' or '.join(map(repr, holding[:MOST_HINTS]))}?"


def _entries(catalog: Catalog) -> Iterator[tuple[Axis, Entry]]:
    for axis in AXES:
        yield from ((axis, entry) for entry in catalog.declared(axis))


def _of_plugin(plugin: PluginRecord) -> Description:
    facts = {"state": str(plugin.state), "from": f"{plugin.origin}, {plugin.target}"}
    facts |= {noun(axis): ", ".join(names) for axis, names in plugin.providers.items()}
    facts |= {"commands": ", ".join(plugin.commands)} if plugin.commands else {}
    lines = [f"plugin {plugin.name}", *_facts(facts), *(INDENT + reason for reason in plugin.reasons)]
    return Description({"what": "plugin", **plugin_data(plugin)}, lines)


def _of_entry(axis: Axis, entry: Entry) -> Description:
    provider = entry.provider
    schema = options_schema(provider.options)
    facts = {"from": str(entry.plugin), "can": ", ".join(sorted(provider.capabilities)), "lacks": entry.lacks or ""}
    lines = [
        f"{noun(axis)} {provider.name}",
        *wrapped(INDENT, provider.summary),
        *_facts({name: value for name, value in facts.items() if value}),
        *option_lines(schema),
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


def _facts(facts: Mapping[str, str]) -> Iterator[str]:
    for name, value in facts.items():
        yield from wrapped(f"{INDENT}{name:<15}", value)
