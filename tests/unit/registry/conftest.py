from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

import click
import pytest

from stagewire import Extra, Options, Provider, hookimpl
from stagewire.registry import Candidate, Catalog


class Make:
    """Makes providers, plugins and candidates of a line each."""

    def provider(self, name: str, *, extra: Extra | None = None, **fields: Any) -> Provider[Any]:
        values: dict[str, Any] = {
            "summary": f"the {name}",
            "factory": lambda _options, _context: name,
            "options": Options,
        }
        return Provider(name=name, extra=extra, **(values | fields))

    def plugin(self, *stages: str | Provider[Any], commands: Iterable[str] = (), **hooks: Any) -> ModuleType:
        """Return a module that offers the stages and commands; ``hooks`` are functions of any name, marked here."""
        offered = [self.provider(each) if isinstance(each, str) else each for each in stages]
        if offered:
            hooks.setdefault("stagewire_stages", lambda: offered)
        if commands:
            made = [click.Command(name) for name in commands]
            hooks.setdefault("stagewire_commands", lambda: made)
        module = ModuleType("plugin_under_test")
        for name, function in hooks.items():
            setattr(module, name, hookimpl(function))
        return module

    def candidate(self, name: str, plugin: object, distribution: str = "acme", version: str = "1.0") -> Candidate:
        """Return a candidate whose import yields the plugin, or raises it if it is an exception."""

        def load() -> object:
            if isinstance(plugin, BaseException):
                raise plugin
            return plugin

        return Candidate(name, distribution, version, f"{name}_package.plugin", load)

    def catalog(self, *candidates: Candidate, environ: dict[str, str] | None = None, **options: Any) -> Catalog:
        return Catalog.discover(installed=candidates, environ=environ or {}, **options)


@pytest.fixture
def make() -> Make:
    return Make()


@pytest.fixture
def states() -> Callable[[Catalog], Sequence[str]]:
    return lambda catalog: [f"{plugin.name}:{plugin.state}" for plugin in catalog.plugins()]
