"""Looking for optional installs without importing any."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stagewire import Extra
from stagewire.registry.extras import missing_extra


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def lacks(make: Any, *modules: str) -> str | None:
    return missing_extra(make.provider("x", extra=Extra("it", modules)))


def package(site: Path, *parts: str) -> None:
    folder = site.joinpath(*parts)
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('imported')")


def test_an_installed_package_is_found_and_not_imported(make: Any, site: Path) -> None:
    package(site, "driver_one")
    assert lacks(make, "driver_one") is None
    assert "driver_one" not in sys.modules


def test_a_module_within_a_package_is_found_without_importing_the_package(make: Any, site: Path) -> None:
    package(site, "driver_two")
    package(site, "driver_two", "aio")
    assert lacks(make, "driver_two.aio") is None
    assert "'driver_two.none'" in str(lacks(make, "driver_two.none"))
    assert "'nowhere.at.all'" in str(lacks(make, "nowhere.at.all"))
    assert "driver_two" not in sys.modules


def test_a_bare_folder_of_that_name_does_not_count(make: Any, site: Path) -> None:
    (site / "driver_three").mkdir()
    assert "'driver_three'" in str(lacks(make, "driver_three"))


def test_a_module_within_a_namespace_package_counts(make: Any, site: Path) -> None:
    package(site, "space", "driver")
    assert lacks(make, "space.driver") is None


def test_stand_ins_in_sys_modules_count_as_what_they_stand_for(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = ModuleType("driver_four")
    stand_in.__spec__ = None
    monkeypatch.setitem(sys.modules, "driver_four", stand_in)
    monkeypatch.setitem(sys.modules, "driver_five", None)
    assert lacks(make, "driver_four") is None
    assert "'driver_four.aio'" in str(lacks(make, "driver_four.aio"))
    assert "'driver_five'" in str(lacks(make, "driver_five"))


def test_all_that_is_missing_is_named(make: Any) -> None:
    assert "needs 'no_one' and 'no_two', not installed" in str(lacks(make, "no_one", "json", "no_two"))
