"""Block and allow lists, and the one order of plugins."""

from __future__ import annotations

import random
from typing import Any

import pytest

from stagewire import PluginError
from stagewire.registry import Candidate, Selection


def explosive(name: str) -> Candidate:
    def load() -> object:
        raise AssertionError(f"{name} was imported")

    return Candidate(name, "acme", "1.0", f"{name}.plugin", load)


def test_a_blocked_plugin_is_never_imported(make: Any, states: Any) -> None:
    catalog = make.catalog(explosive("bad"), environ={"STAGEWIRE_PLUGINS_BLOCK": " bad , other"})
    assert states(catalog) == ["bad:blocked"]
    assert "STAGEWIRE_PLUGINS_BLOCK" in catalog.plugins()[0].reasons[0]


def test_only_what_the_allow_list_names_is_imported(make: Any, states: Any) -> None:
    good = make.candidate("good", make.plugin("good.one"))
    catalog = make.catalog(explosive("bad"), good, environ={"STAGEWIRE_PLUGINS_ALLOW": "good"})
    assert states(catalog) == ["bad:blocked", "good:loaded"]
    assert "STAGEWIRE_PLUGINS_ALLOW" in catalog.plugins()[0].reasons[0]


def test_an_empty_allow_variable_allows_all_and_an_empty_argument_none(make: Any, states: Any) -> None:
    good = make.candidate("good", make.plugin("good.one"))
    assert states(make.catalog(good, environ={"STAGEWIRE_PLUGINS_ALLOW": ""})) == ["good:loaded"]
    assert states(make.catalog(good, allow=())) == ["good:blocked"]


def test_arguments_replace_the_environment_and_block_beats_allow(make: Any, states: Any) -> None:
    good = make.candidate("good", make.plugin("good.one"))
    environ = {"STAGEWIRE_PLUGINS_BLOCK": "good"}
    assert states(make.catalog(good, environ=environ, block=())) == ["good:loaded"]
    assert states(make.catalog(good, block=["good"], allow=["good"])) == ["good:blocked"]


def test_using_a_blocked_plugin_says_that_it_is_blocked(make: Any) -> None:
    catalog = make.catalog(explosive("bad"), block=["bad"])
    with pytest.raises(PluginError, match=r"stage 'bad\.one' cannot be used: plugin 'bad' \(acme 1\.0\) is blocked"):
        catalog.get("stages", "bad.one")


def test_plugins_that_the_program_hands_over_are_subject_to_no_list(make: Any, states: Any) -> None:
    catalog = make.catalog(block=["mine"], allow=(), extra_plugins={"mine": make.plugin("mine.one")})
    assert states(catalog) == ["mine:loaded"]
    assert catalog.plugins()[0].origin == "given by the program"


def test_names_on_a_list_that_nothing_has_are_told() -> None:
    selection = Selection(block=frozenset({"ecko"}), allow=frozenset({"echo"}))
    assert selection.unmatched(["echo", "other"]) == ("ecko",)


def test_the_order_is_built_in_then_distribution_then_entry_point(make: Any) -> None:
    candidates = [
        make.candidate("zeta", make.plugin("a"), "stagewire"),
        make.candidate("beta", make.plugin("b"), "Acme_Two"),
        make.candidate("alpha", make.plugin("c"), "acme-two"),
        make.candidate("first", make.plugin("d"), "acme-one"),
    ]
    random.shuffle(candidates)
    catalog = make.catalog(*candidates, extra_plugins={"mine": make.plugin("e")})
    assert [plugin.name for plugin in catalog.plugins()] == ["zeta", "first", "alpha", "beta", "mine"]


def test_two_catalogs_with_different_plugins_know_nothing_of_each_other(make: Any) -> None:
    one, two = (make.catalog(extra_plugins={name: make.plugin(f"{name}.stage")}) for name in ("one", "two"))
    assert one.names("stages") == ("one.stage",)
    assert two.names("stages") == ("two.stage",)
