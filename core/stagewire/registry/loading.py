"""Imports one plugin and takes what it offers, whatever that plugin may do."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from stagewire.errors import PluginError, describe
from stagewire.registry.axes import AXES
from stagewire.registry.candidates import Candidate
from stagewire.registry.facade import COMMANDS, PluginHooks
from stagewire.spec.hooks import PROJECT
from stagewire.spec.provider import Axis, Provider

if TYPE_CHECKING:
    import click

T = TypeVar("T")

_NOTHING: Mapping[Axis, tuple[Provider[Any], ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Broken:
    """What went wrong, while doing what."""

    doing: str
    error: BaseException

    def __str__(self) -> str:
        if isinstance(self.error, PluginError):  # raised by the registry: it speaks for itself
            return f"{self.doing}: {self.error}"
        place = _place(self.error)
        return f"{self.doing}: {describe(self.error)}{f' (at {place})' if place else ''}"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a plugin declares. With ``broken`` it is what was still learned, for messages; nothing of it is used."""

    providers: Mapping[Axis, tuple[Provider[Any], ...]] = field(default_factory=lambda: _NOTHING)
    commands: tuple[click.Command, ...] = ()
    broken: Broken | None = None


def load(candidate: Candidate) -> Offer:
    """Import the plugin, validate its hooks and call each. Never raises but for KeyboardInterrupt."""
    plugin = _attempt(f"importing {candidate.target}", candidate.load)
    if isinstance(plugin, Broken):
        return Offer(broken=plugin)
    hooks = _attempt("its hooks", lambda: PluginHooks(plugin))
    return Offer(broken=hooks) if isinstance(hooks, Broken) else _collect(hooks)


def _collect(hooks: PluginHooks) -> Offer:
    """Call every hook even if one failed: knowing the names of a broken plugin makes for better messages."""
    results = {axis: _attempt(f"{PROJECT}_{axis}()", partial(hooks.providers, axis)) for axis in AXES}
    commands = _attempt(f"{COMMANDS}()", hooks.commands)
    failures = [result for result in (*results.values(), commands) if isinstance(result, Broken)]
    return Offer(
        providers={axis: result for axis, result in results.items() if not isinstance(result, Broken) and result},
        commands=() if isinstance(commands, Broken) else commands,
        broken=failures[0] if failures else None,
    )


def _attempt(doing: str, call: Callable[[], T]) -> T | Broken:
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 — a plugin that calls sys.exit() at import must not end the program
        return Broken(doing, error)


def _place(error: BaseException) -> str:
    """Say in which line of the plugin it came up; empty when none of the plugin's lines had a part in it."""
    frames = (frame for frame in traceback.extract_tb(error.__traceback__) if not _machinery(frame.filename))
    first = next(frames, None)
    return f"{first.filename}:{first.lineno}" if first else ""


def _machinery(filename: str) -> bool:
    return filename.startswith(("<frozen ", *_MACHINERY))


_MACHINERY = tuple(str(Path(module).parent) for module in (__file__, pluggy.__file__, importlib.__file__))
