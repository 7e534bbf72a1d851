"""Every hook is documented, and some plugin of stagewire's own makes use of it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from stagewire.cli import plugin as core
from stagewire.registry import AXES, Catalog
from stagewire.registry.facade import HOOKS
from stagewire.spec.hooks import Hooks

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"
SPECIFIED = sorted(name for name, _function in inspect.getmembers(Hooks, inspect.isfunction))


def test_the_registry_calls_every_hook_that_is_specified() -> None:
    assert sorted(HOOKS) == SPECIFIED
    assert [f"stagewire_{axis}" for axis in AXES] + ["stagewire_commands"] == list(HOOKS)


@pytest.mark.parametrize("hook", SPECIFIED)
def test_every_hook_has_its_row_in_the_documentation(hook: str) -> None:
    assert re.search(rf"^\| `{hook}` \|", DOCUMENT.read_text(), re.MULTILINE), f"{hook} is not in {DOCUMENT.name}"


def test_the_documentation_names_no_hook_that_does_not_exist() -> None:
    named = set(re.findall(r"`(stagewire_[a-z_]+)`", DOCUMENT.read_text()))
    assert named <= set(SPECIFIED)


@pytest.mark.parametrize("hook", SPECIFIED)
def test_every_hook_says_what_it_returns(hook: str) -> None:
    assert (inspect.getdoc(getattr(Hooks, hook)) or "").startswith("Return ")


@pytest.mark.parametrize("axis", AXES)
def test_every_axis_is_used_by_a_plugin_of_our_own(axis: str) -> None:
    ours = [plugin for plugin in Catalog.discover(environ={}).plugins() if plugin.distribution == "stagewire"]
    assert any(axis in plugin.providers for plugin in ours)


def test_the_commands_hook_is_used_by_a_plugin_of_our_own() -> None:
    (record,) = Catalog.discover(installed=(), environ={}, extra_plugins={"core": core}).plugins()
    assert "run" in record.commands
