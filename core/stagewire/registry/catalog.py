"""What is installed, by axis and name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from stagewire.errors import PluginError
from stagewire.registry.admission import Entry, Table, admit_all
from stagewire.registry.axes import noun
from stagewire.registry.candidates import Candidate, given, installed_candidates
from stagewire.registry.lookup import find_owner, not_found
from stagewire.registry.records import PluginRecord, PluginState
from stagewire.selection import Selection
from stagewire.spec.provider import Axis, Provider

if TYPE_CHECKING:
    import click


class Catalog:
    """The providers and commands of all plugins. Does not change once made; any thread may use it."""

    def __init__(self, table: Table, selection: Selection) -> None:
        self._table = table
        self.selection = selection

    @classmethod
    def discover(
        cls,
        *,
        block: Iterable[str] | None = None,
        allow: Iterable[str] | None = None,
        environ: Mapping[str, str] | None = None,
        extra_plugins: Mapping[str, object] | None = None,
        built_in: Iterable[Candidate] = (),
        installed: Iterable[Candidate] | None = None,
    ) -> Self:
        """Find and load the plugins. Never raises for a plugin's fault: `plugins` says what became of each.

        Args:
            block: Names of plugins not to import. Default: ``STAGEWIRE_PLUGINS_BLOCK``.
            allow: Names of the only plugins to import. Default: ``STAGEWIRE_PLUGINS_ALLOW``; unset means all.
            environ: Where those two are read. Default: the process environment.
            extra_plugins: Plugin objects (modules or instances) by name; last in the order, not subject to the lists.
            built_in: What the calling program brings itself; first in the order, so that no plugin takes its names.
            installed: What stands in for the installed entry points; empty for none.
        """
        selection = Selection.of(block, allow, os.environ if environ is None else environ)
        found = installed_candidates() if installed is None else sorted(installed, key=lambda each: each.order)
        return cls(admit_all((*built_in, *found, *given(extra_plugins or {})), selection), selection)

    @classmethod
    def of(cls, **providers: Iterable[Provider[Any]]) -> Self:
        """Make a catalog of providers by axis, for tests: ``Catalog.of(stages=[…], transports=[…])``."""
        table = Table()
        record = PluginRecord("given", "", "", "", PluginState.LOADED)
        for axis, offered in providers.items():
            table.entries[axis] |= {provider.name: Entry(provider, record) for provider in offered}  # type: ignore[index]
        return cls(table, Selection())

    def get(self, axis: Axis, name: str) -> Provider[Any]:
        """Return the provider that is called ``name``.

        Raises:
            PluginError: There is none, it lacks an optional install, or its plugin is broken, in which case the
                original error is the cause. The message says what to do.
        """
        entry = self._table.entries[axis].get(name)
        if entry is None:
            raise self._not_found(axis, name)
        if entry.lacks is not None:
            raise PluginError(f"{noun(axis)} {entry.lacks}")
        return entry.provider

    def names(self, axis: Axis) -> tuple[str, ...]:
        """Return the names of the usable providers of an axis, sorted."""
        return tuple(provider.name for provider in self.providers(axis))

    def providers(self, axis: Axis) -> Sequence[Provider[Any]]:
        """Return the usable providers of an axis, sorted by name."""
        entries = self._table.entries[axis]
        return [entries[name].provider for name in sorted(entries) if entries[name].lacks is None]

    def declared(self, axis: Axis) -> Sequence[Entry]:
        """Return every name of an axis with its plugin and what it lacks, if anything, sorted by name."""
        entries = self._table.entries[axis]
        return [entries[name] for name in sorted(entries)]

    def plugins(self) -> Sequence[PluginRecord]:
        """Return a record of every plugin found, in their order."""
        return tuple(self._table.plugins)

    def commands(self) -> Sequence[click.Command]:
        """Return the commands of the ``stagewire`` program, sorted by name."""
        return [self._table.commands[name][0] for name in sorted(self._table.commands)]

    def command(self, name: str) -> click.Command:
        """Return the command that is called ``name``. Raises `PluginError` as `get` does."""
        if name in self._table.commands:
            return self._table.commands[name][0]
        plugins = self._table.plugins
        owner = find_owner(name, [plugin for plugin in plugins if name in plugin.commands], plugins)
        raise not_found("command", name, self._table.commands, plugins, owner)

    def _not_found(self, axis: Axis, name: str) -> PluginError:
        plugins = self._table.plugins
        declaring = [plugin for plugin in plugins if name in plugin.providers.get(axis, ())]
        owner = find_owner(name, declaring, plugins)
        return not_found(noun(axis), name, self._table.entries[axis], plugins, owner)
