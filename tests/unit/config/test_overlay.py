"""Overlays: maps merge, lists and scalars replace, null deletes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire.config import Config, load_config, load_document
from stagewire.registry import Catalog

Faults = Callable[..., list[str]]
HEAD = "version: 1\npipeline: flow\n"

KEYS = st.sampled_from("abc")
LEAVES = st.one_of(st.integers(0, 3), st.sampled_from(["x", "y"]), st.lists(st.integers(0, 2), max_size=2))
TREES = st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
MAPS = st.dictionaries(KEYS, TREES, max_size=3)
PATCHES = st.dictionaries(
    KEYS,
    st.recursive(LEAVES | st.none(), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8),
    max_size=3,
)
SHAPED = st.fixed_dictionaries(
    {}, optional={"a": LEAVES, "b": st.fixed_dictionaries({}, optional={"c": LEAVES, "d": LEAVES}), "e": LEAVES}
)
"""Maps in which each path is a map everywhere or nowhere, and no null: where overlays are associative."""


@pytest.fixture(scope="module")
def merge(folder: Path) -> Callable[..., Any]:
    """Lay plain data over each other, through files. JSON is YAML."""

    def merge(*layers: Any) -> Any:
        paths = [folder / f"{number}.yaml" for number in range(len(layers))]
        for path, layer in zip(paths, layers, strict=True):
            path.write_text(json.dumps(layer))
        return load_document(paths, {}).data

    return merge


def by_the_rfc(target: Any, patch: Any) -> Any:
    """RFC 7396, section 2, in its own words."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = by_the_rfc(result.get(name), value)
    return result


def test_maps_merge_lists_replace_and_null_deletes(merge: Callable[..., Any]) -> None:
    base = {"a": {"x": 1, "y": 2}, "b": [1, 2, 3], "c": 1, "d": {"z": 1}}
    site = {"a": {"y": 3, "w": {"v": None}}, "b": [4], "c": None, "d": 5, "e": None}
    assert merge(base, site) == {"a": {"x": 1, "y": 3, "w": {}}, "b": [4], "d": 5}


def test_a_null_of_the_first_file_stays(merge: Callable[..., Any]) -> None:
    assert merge({"a": None}, {"b": 1}) == {"a": None, "b": 1}


@given(base=MAPS, patch=PATCHES)
def test_an_overlay_is_a_json_merge_patch(merge: Callable[..., Any], base: Any, patch: Any) -> None:
    assert merge(base, patch) == by_the_rfc(base, patch)


@given(base=MAPS, patch=PATCHES)
def test_laying_a_file_over_twice_is_the_same_as_once(merge: Callable[..., Any], base: Any, patch: Any) -> None:
    assert merge(base, patch, patch) == merge(base, patch)


@given(base=MAPS)
def test_an_empty_overlay_changes_nothing(merge: Callable[..., Any], base: Any) -> None:
    assert merge(base, {}) == base == merge({}, base)


@given(first=SHAPED, second=SHAPED, third=SHAPED)
def test_overlays_of_one_shape_may_be_merged_in_any_grouping(
    merge: Callable[..., Any], first: Any, second: Any, third: Any
) -> None:
    assert merge(merge(first, second), third) == merge(first, merge(second, third))


def test_each_value_is_located_in_the_file_that_had_the_last_word(tmp_path: Path) -> None:
    base, site = tmp_path / "base.yaml", tmp_path / "site.yaml"
    base.write_text("a:\n  x: 1\n  y: 2\nb: [1, 2]\n")
    site.write_text("\na:\n  y: 3\nb:\n- 4\n")
    origins = load_document([base, site], {}).origins
    assert str(origins[("a", "x")]) == f"{base}:2:6"
    assert str(origins[("a", "y")]) == f"{site}:3:6"
    assert str(origins[("b", 0)]) == f"{site}:5:3"
    assert ("b", 1) not in origins


def test_the_merge_leaves_anchors_alone(tmp_path: Path) -> None:
    base, site = tmp_path / "base.yaml", tmp_path / "site.yaml"
    base.write_text("a: &a {x: 1}\nb: *a\n")
    site.write_text("a: {x: 2}\n")
    assert load_document([base, site], {}).data == {"a": {"x": 2}, "b": {"x": 1}}


def test_faults_of_overlaid_files_name_the_right_file(faults: Faults) -> None:
    found = faults(HEAD + "stages: {x: {use: tone, wpm: 0}}\n", "stages: {x: {wpm: 99, shap: sine}}\n")
    assert found == [
        "b.yaml:1:19: stages.x.wpm: must be at most 60, got 99",
        "b.yaml:1:23: stages.x.shap: unknown key; did you mean 'shape'?",
    ]


def test_a_reference_that_an_overlay_replaces_need_not_be_set(load: Callable[..., Config]) -> None:
    config = load(HEAD + "name: ${env:NAME}\nstages: {}\n", "name: given\n")
    assert config.name == "given"


def test_an_overlay_may_delete_a_fault(load: Callable[..., Config]) -> None:
    config = load(HEAD + "stages: {x: {use: tone, wpm: fast}}\n", "stages: {x: {wpm: null}}\n")
    assert config.options.stages["x"].options.wpm == 20  # type: ignore[attr-defined]


def test_a_value_at_fault_deletes_nothing(faults: Faults) -> None:
    found = faults(HEAD + "stages: {x: {use: tone}}\n", "stages: *nothing\n")
    assert found == ["b.yaml:1:9: stages: alias '*nothing' has no anchor '&nothing' before it"]


def test_name_and_base_come_from_the_first_and_the_last_file(tmp_path: Path, catalog: Catalog) -> None:
    base, site = tmp_path / "flow.yaml", tmp_path / "site" / "here.yaml"
    site.parent.mkdir()
    base.write_text(HEAD + "stages: {}\n")
    site.write_text("limits: {requests: 3}\n")
    config = load_config([base, site], catalog, environ={})
    assert config.name == "flow"
    assert config.base == site.parent
    assert config.document.files == (base, site)
