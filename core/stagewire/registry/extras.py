"""Optional installs: is what a provider needs there? Nothing is imported to find out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

from stagewire.spec.provider import Extra, Provider

METRICS = Extra("metrics", ("prometheus_client",))
"""What the core itself needs for ``metrics:``."""


def missing_extra(provider: Provider[Any]) -> str | None:
    """Say which optional install the provider lacks and how to get it; ``None`` when it lacks nothing."""
    return None if provider.extra is None else missing(repr(provider.name), provider.extra)


def missing(what: str, extra: Extra) -> str | None:
    """Say what an optional install lacks that ``what`` needs and how to get it; ``None`` when it lacks nothing."""
    absent = [module for module in extra.modules if not _installed(module)]
    if not absent:
        return None
    modules = " and ".join(repr(module) for module in absent)
    return f"{what} needs {modules}, not installed here: {remedy(extra)}"


def remedy(extra: Extra) -> str:
    """Return the line that installs the extra."""
    return f'pip install "{extra.distribution}[{extra.name}]"'


def _installed(module: str) -> bool:
    """Look for a module down its packages. A bare folder of that name (a namespace package) does not count."""
    if module in sys.modules:
        return sys.modules[module] is not None
    head, *rest = module.split(".")
    spec = _top_level(head)
    for part in rest:
        spec = spec and _within(f"{spec.name}.{part}", spec.submodule_search_locations or ())
    return spec is not None and spec.origin is not None


def _top_level(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ValueError:  # somebody put a stand-in without a spec into sys.modules
        return None


def _within(name: str, folders: Sequence[str]) -> ModuleSpec | None:
    # find_spec would import the parent package, and looking must not import.
    found = (finder.find_spec(name, list(folders)) for finder in sys.meta_path)
    return next((spec for spec in found if spec is not None), None)
