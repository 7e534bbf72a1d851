"""One plugin's hooks, validated and typed. pluggy lies beneath; each plugin has a manager of its own.

A manager per plugin rather than one for all: what a plugin does wrong is found before anything is kept of it, an error
says whose it is, and no plugin can wrap the hooks of another.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pluggy
from pydantic import BaseModel

from stagewire.errors import PluginError
from stagewire.registry.axes import AXES
from stagewire.registry.wording import listed
from stagewire.spec.hooks import PROJECT, Hooks
from stagewire.spec.provider import Axis, Provider
from stagewire.suggest import did_you_mean

if TYPE_CHECKING:
    import click

COMMANDS = f"{PROJECT}_commands"
HOOKS = (*(f"{PROJECT}_{axis}" for axis in AXES), COMMANDS)
"""The names of all hooks."""


class PluginHooks:
    """Calls the hooks of one plugin and checks what they return.

    Raises:
        PluginError: The plugin implements no hook, an unknown one, or one with a wrong signature.
    """

    def __init__(self, plugin: object) -> None:
        _refuse_class(plugin)
        _refuse_unmarked(plugin)
        self._hooks = _validated(plugin).hook

    def providers(self, axis: Axis) -> tuple[Provider[Any], ...]:
        """Return what the plugin offers on the axis. Raises whatever its hook raises, or `PluginError`."""
        offered = self._call(f"{PROJECT}_{axis}")
        for provider in offered:
            _check_provider(provider)
        _refuse_repeats([provider.name for provider in offered])
        return tuple(offered)

    def commands(self) -> tuple[click.Command, ...]:
        """Return the plugin's commands. Raises whatever its hook raises, or `PluginError`."""
        offered = self._call(COMMANDS)
        for command in offered:
            _check_command(command)
        _refuse_repeats([command.name for command in offered])
        return tuple(offered)

    def _call(self, hook: str) -> list[Any]:
        caller = getattr(self._hooks, hook)
        if not caller.get_hookimpls():
            return []
        results = caller()
        if not results:
            raise PluginError("it returned None; return a list, empty if there is nothing to offer")
        return _as_list(results[0])


def _refuse_class(plugin: object) -> None:
    if inspect.isclass(plugin):
        raise PluginError(f"the entry point names the class {plugin.__name__}; name a module or an instance")


def _refuse_unmarked(plugin: object) -> None:
    for hook in HOOKS:
        function = getattr(plugin, hook, None)
        if inspect.isroutine(function) and not hasattr(function, f"{PROJECT}_impl"):
            raise PluginError(f"{hook} lacks its mark; put @hookimpl (from stagewire) above it")


def _validated(plugin: object) -> pluggy.PluginManager:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    try:
        manager.register(plugin)
    except pluggy.PluginValidationError as error:
        raise PluginError(" ".join(str(error).split())) from error
    _refuse_unknown([caller.name for caller in manager.get_hookcallers(plugin) or ()])
    return manager


def _refuse_unknown(implemented: list[str]) -> None:
    if not implemented:
        raise PluginError(f"it implements no hook; mark one of {listed(HOOKS)} with @hookimpl (from stagewire)")
    for name in implemented:
        if name not in HOOKS:
            remedy = did_you_mean(name, HOOKS) or f"; the hooks are {listed(HOOKS)}"
            raise PluginError(f"there is no hook {name!r}{remedy}")


def _as_list(result: object) -> list[Any]:
    if inspect.iscoroutine(result):
        result.close()
        raise PluginError("it is a coroutine function; hooks only register and are plain functions")
    if not isinstance(result, Iterable) or isinstance(result, str | bytes):
        raise PluginError(f"it returned {type(result).__name__}; return a list")
    return list(result)


def _check_provider(provider: object) -> None:
    if not isinstance(provider, Provider):
        raise PluginError(f"it returned a {type(provider).__name__} in its list; it takes Provider objects only")
    faults = {
        "a name without spaces": _is_name(provider.name),
        "an options model derived from stagewire.Options, all of whose types exist": _is_model(provider.options),
        "a callable factory": callable(provider.factory),
    }
    for wanted, given in faults.items():
        if not given:
            raise PluginError(f"provider {provider.name!r} needs {wanted}")


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.split() == [name]


def _is_model(options: object) -> bool:
    if not (inspect.isclass(options) and issubclass(options, BaseModel)):
        return False
    if options.__pydantic_complete__ or options.model_config.get("defer_build"):
        return True
    return options.model_rebuild(raise_errors=False) is not False


def _check_command(command: object) -> None:
    import click  # noqa: PLC0415 — a program that only builds pipelines need not load it

    if not isinstance(command, click.Command) or not command.name:
        raise PluginError(f"it returned a {type(command).__name__} in its list; it takes named click commands")


def _refuse_repeats(names: list[str | None]) -> None:
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        raise PluginError(f"it returned {listed(repeated)} more than once; a name stands for one thing")
