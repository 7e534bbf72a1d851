"""Commands that plugins declare in their metadata: found without other plugins, under the promises of discovery."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from stagewire.cli import Exit, invoke
from stagewire.cli.declared import declared_command

PLUGIN = """
import click
from stagewire import hookimpl

@click.command("{command}")
def command():
    click.echo("{command} of {module}")

@hookimpl
def stagewire_commands():
    return [command]
"""
BROKEN = "raise RuntimeError('no such luck')"


class Site:
    """A folder on the path with plugins in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, module: str, command: str, code: str = PLUGIN, target: str | None = None) -> None:
        info = self.folder / f"{module}-1.0.dist-info"
        info.mkdir()
        points = f"[stagewire.plugins]\n{module} = {module}\n[stagewire.commands]\n{command} = {target or module}\n"
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
        (self.folder / f"{module}.py").write_text(code.format(command=command, module=module))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(str(tmp_path))
    return Site(tmp_path)


def test_a_declared_command_is_found(site: Site) -> None:
    site.install("acme_greet", "greet")
    found = declared_command("greet", {})
    assert isinstance(found, click.Command)
    assert found.name == "greet"


@pytest.mark.parametrize(
    "environ", [{"STAGEWIRE_PLUGINS_BLOCK": "acme_shut"}, {"STAGEWIRE_PLUGINS_ALLOW": "other"}], ids=["block", "allow"]
)
def test_the_lists_are_asked_before_the_import(
    site: Site, environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    site.install("acme_shut", "shut")
    assert declared_command("shut", environ) is None
    assert invoke(["shut"], environ=environ) == Exit.USAGE
    assert "acme_shut" not in sys.modules
    assert "acme_shut" in capsys.readouterr().err


def test_a_plugin_that_raises_at_import_is_told_as_broken(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.install("acme_torn", "torn", BROKEN)
    assert declared_command("torn", {}) is None
    assert invoke(["torn"], environ={}) == Exit.USAGE
    assert "no such luck" in capsys.readouterr().err


def test_a_command_that_two_plugins_declare_is_left_to_discovery(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.install("acme_second", "twice")
    site.install("acme_first", "twice")
    assert declared_command("twice", {}) is None
    assert invoke(["twice"], environ={}) == Exit.OK
    assert capsys.readouterr().out == "twice of acme_first\n"


@pytest.mark.parametrize(
    "code", ["commands = []", PLUGIN.replace("@hookimpl", ""), PLUGIN.replace("[command]", "None")]
)
def test_what_is_not_as_it_should_be_is_left_to_discovery(site: Site, code: str) -> None:
    site.install("acme_odd", "odd", code)
    sys.modules.pop("acme_odd", None)
    assert declared_command("odd", {}) is None


def test_a_declaration_for_a_module_that_is_no_plugin_counts_for_nothing(site: Site) -> None:
    site.install("acme_alien", "alien", target="json")
    assert declared_command("alien", {}) is None


def test_no_plugin_takes_the_name_of_the_programs_own_command(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.install("acme_thief", "version")
    assert invoke(["version"], environ={}) == Exit.OK
    assert capsys.readouterr().out.startswith("stagewire ")
