"""Discovery over real metadata on the path, damaged or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stagewire.registry import Catalog, PluginRecord

GOOD = """
from stagewire import Provider, hookimpl
@hookimpl
def stagewire_stages():
    return [Provider(name="{name}.one", summary="", factory=lambda options, context: None)]
"""


class Site:
    """A folder on the path with distributions in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, distribution: str, points: str, code: str | None = None, version: str = "1.0") -> None:
        module = distribution.replace("-", "_")
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[stagewire.plugins]\n{points}\n")
        if code is not None:
            (self.folder / f"{module}.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Site(tmp_path)


def record(name: str, **options: Any) -> PluginRecord:
    found = [plugin for plugin in Catalog.discover(environ={}, **options).plugins() if plugin.name == name]
    assert len(found) == 1
    return found[0]


def test_an_installed_plugin_is_found_with_its_distribution_and_version(site: Site) -> None:
    site.install("acme-found", "found = acme_found", GOOD.format(name="found"), version="2.5")
    plugin = record("found")
    assert (plugin.distribution, plugin.version, plugin.target) == ("acme-found", "2.5", "acme_found")
    assert plugin.providers == {"stages": ("found.one",)}


def test_a_plugin_that_raises_at_import_is_broken_at_its_own_line(site: Site) -> None:
    site.install("acme-raising", "raising = acme_raising", "\nimport no_such_driver\n")
    plugin = record("raising")
    assert plugin.state == "broken"
    assert isinstance(plugin.error, ModuleNotFoundError)
    assert f"(at {site.folder / 'acme_raising.py'}:2)" in plugin.reasons[0]


def test_an_entry_point_to_nowhere_is_broken(site: Site) -> None:
    site.install("acme-nowhere", "nowhere = acme_nowhere:plugin", "")
    assert "AttributeError" in record("nowhere").reasons[0]


def test_malformed_metadata_of_another_package_hides_nothing(site: Site) -> None:
    site.install("acme-fine", "fine = acme_fine", GOOD.format(name="fine"))
    site.install("unrelated", "x = y\n[console_scripts]\nthis line has no sign")
    assert record("fine").state == "loaded"
    broken = record("unrelated")
    assert broken.state == "broken"
    assert "the entry points of unrelated cannot be read" in broken.reasons[0]


def test_malformed_metadata_that_does_not_concern_stagewire_is_not_mentioned(site: Site) -> None:
    info = site.folder / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_bytes(b"[console_scripts]\n\xff\xfe nothing\n")
    (site.folder / "nameless-1.0.dist-info").mkdir()
    plugins = Catalog.discover(environ={}).plugins()
    assert "other" not in [plugin.name for plugin in plugins]


def test_damaged_metadata_costs_the_version_and_not_the_plugin(site: Site) -> None:
    site.install("acme-damaged", "damaged = acme_damaged", GOOD.format(name="damaged"))
    (site.folder / "acme_damaged-1.0.dist-info" / "METADATA").write_bytes(b"\xff\xfe\x00")
    plugin = record("damaged")
    assert plugin.state == "loaded"
    assert plugin.version == ""


def test_what_is_earlier_on_the_path_hides_a_second_install(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = Site(site.folder / "hidden")
    hidden.install("acme-twice", "twice = acme_twice", version="0.1")
    site.install("acme-twice", "twice = acme_twice", GOOD.format(name="twice"), version="0.2")
    monkeypatch.syspath_prepend(str(hidden.folder))
    monkeypatch.syspath_prepend(str(site.folder))
    assert record("twice").version == "0.2"


def test_installed_plugins_come_in_their_order_whatever_the_path_says(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = Site(site.folder / "later")
    site.install("zzz-plugin", "zzz = zzz_plugin", GOOD.format(name="zzz"))
    later.install("aaa-plugin", "aaa = aaa_plugin", GOOD.format(name="aaa"))
    monkeypatch.syspath_prepend(str(later.folder))
    monkeypatch.syspath_prepend(str(site.folder))
    plugins = Catalog.discover(environ={}).plugins()
    assert [plugin.name for plugin in plugins if plugin.name in {"aaa", "zzz"}] == ["aaa", "zzz"]
    assert plugins[0].distribution == "stagewire"


def test_a_second_install_stays_hidden_when_some_metadata_is_malformed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("unrelated", "[console_scripts]\nthis line has no sign")
    test_what_is_earlier_on_the_path_hides_a_second_install(site, monkeypatch)
