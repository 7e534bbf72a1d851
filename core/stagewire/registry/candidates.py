"""Plugins that were found and not imported yet, in their one order."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import NoReturn

from stagewire.errors import PluginError
from stagewire.spec.hooks import ENTRY_POINT_GROUP, PROJECT


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plugin before its import.

    Attributes:
        name: The name of its entry point.
        distribution: The package that declares it; empty when the program handed the plugin over.
        version: That package's version; empty when it is not known.
        target: What the entry point names.
        load: Imports and returns the plugin; may raise anything.
        selectable: Whether block and allow lists apply.
    """

    name: str
    distribution: str
    version: str
    target: str
    load: Callable[[], object]
    selectable: bool = True

    @property
    def order(self) -> tuple[bool, str, str]:
        """The sort key: what the distribution ``stagewire`` brings, then by distribution and entry-point name."""
        return (_normalized(self.distribution) != PROJECT, _normalized(self.distribution), self.name)


def given(plugins: Mapping[str, object], distribution: str = "", version: str = "") -> Iterator[Candidate]:
    """Make candidates of plugin objects that a program has at hand; no list can refuse those."""
    for name, plugin in plugins.items():
        target = plugin.__name__ if inspect.ismodule(plugin) else type(plugin).__qualname__
        yield Candidate(name, distribution, version, target, partial(_identity, plugin), selectable=False)


def installed_candidates() -> list[Candidate]:
    """Return every installed plugin in order, importing none. Unreadable metadata becomes one that fails to load."""
    try:
        found = [_from_entry_point(point) for point in metadata.entry_points(group=ENTRY_POINT_GROUP)]
    except Exception:  # noqa: BLE001 — one package's malformed metadata must not hide the plugins of the others
        found = list(_one_by_one(metadata.distributions()))
    return sorted(found, key=lambda candidate: candidate.order)


def _one_by_one(distributions: Iterable[metadata.Distribution]) -> Iterator[Candidate]:
    seen: set[str] = set()
    for distribution in distributions:
        name = _field(distribution, "Name")
        if _normalized(name) not in seen:  # what comes earlier on the path hides what comes later, as in an import
            seen.add(_normalized(name))
            yield from _of_distribution(distribution, name)


def _of_distribution(distribution: metadata.Distribution, name: str) -> Iterator[Candidate]:
    try:
        for point in distribution.entry_points.select(group=ENTRY_POINT_GROUP):
            yield _from_entry_point(point)
    except Exception as error:  # noqa: BLE001 — see installed_candidates
        if _mentions_group(distribution):
            load = partial(_refuse, f"the entry points of {name or 'a package'} cannot be read", error)
            yield Candidate(name, name, _field(distribution, "Version"), "entry_points.txt", load)


def _mentions_group(distribution: metadata.Distribution) -> bool:
    try:
        return ENTRY_POINT_GROUP in (distribution.read_text("entry_points.txt") or "")
    except Exception:  # noqa: BLE001 — nothing can be said about it
        return False


def _from_entry_point(point: metadata.EntryPoint) -> Candidate:
    name, version = (_field(point.dist, "Name"), _field(point.dist, "Version")) if point.dist else ("", "")
    return Candidate(point.name, name, version, point.value, point.load)


def _field(distribution: metadata.Distribution, key: str) -> str:
    try:
        return str(distribution.metadata[key] or "")
    except Exception:  # noqa: BLE001 — a damaged METADATA file costs the name, not the plugin
        return ""


def _normalized(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _identity(plugin: object) -> object:
    return plugin


def _refuse(message: str, error: Exception) -> NoReturn:
    raise PluginError(f"{message}: {error}. Reinstall it") from error
