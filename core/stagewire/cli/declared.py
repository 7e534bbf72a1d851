"""The short way to a command: a plugin declares its name in its metadata, so that no other plugin is imported for it.

An entry point of the group ``stagewire.commands`` has the command's name and names the same module as the plugin's
entry point in ``stagewire.plugins`` does. Whatever is unusual about it is left to the catalog, which says what is
wrong.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from importlib import metadata

import click

from stagewire.cli import commands
from stagewire.selection import Selection
from stagewire.spec.hooks import ENTRY_POINT_GROUP, PROJECT

COMMANDS_GROUP = f"{PROJECT}.commands"
"""The entry-point group of declared commands."""


def declared_command(name: str, environ: Mapping[str, str]) -> click.Command | None:
    """Import the one plugin that declares the command and return it. Raises nothing but KeyboardInterrupt.

    Returns:
        ``None`` when no plugin, or more than one, declares it; when block and allow lists refuse the plugin, which is
        then not imported; when it is not as it should be; and for the program's own commands.
    """
    if name in {module.name for module in pkgutil.iter_modules(commands.__path__)}:
        return None
    try:
        point = _declaring(name, Selection.of(None, None, environ))
        return None if point is None else _offered(name, point.load())
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 — the catalog meets the same fault, and tells it with the plugin's record
        return None


def _declaring(name: str, selection: Selection) -> metadata.EntryPoint | None:
    """Return the entry point of the one admissible plugin that declares the command."""
    points = metadata.entry_points()
    declared = list(points.select(group=COMMANDS_GROUP, name=name))
    if len(declared) != 1:
        return None
    plugins = [each for each in points.select(group=ENTRY_POINT_GROUP) if each.value == declared[0].value]
    if len(plugins) != 1 or selection.refusal(plugins[0].name) is not None:
        return None
    return plugins[0] if _of_one_package(plugins[0], declared[0]) else None


def _of_one_package(one: metadata.EntryPoint, other: metadata.EntryPoint) -> bool:
    return one.dist is not None and other.dist is not None and one.dist.name == other.dist.name


def _offered(name: str, plugin: object) -> click.Command | None:
    hook = getattr(plugin, f"{PROJECT}_commands", None)
    if inspect.isclass(plugin) or not callable(hook) or not hasattr(hook, f"{PROJECT}_impl"):
        return None
    offered: Iterable[object] = hook()
    found = [each for each in offered if isinstance(each, click.Command) and each.name == name]
    return found[0] if len(found) == 1 else None
