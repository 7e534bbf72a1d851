"""A plugin that stagewire knows nothing of: installed by pip, used from YAML; and a broken one beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

ECHO = Path(__file__).resolve().parent.parent / "fixtures" / "stagewire-echo"

PIPELINE = """\
version: 1
pipeline: orchestrator
logging: {level: error}
stages:
  sentences: {use: text.sentences}
  echo: {use: echo.echo, times: 2}
edges:
  - {from: sentences, to: echo, kind: chunk}
outputs:
  echo: {file: echo.txt}
"""


def pip_install(project: Path, target: Path) -> None:
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
        "--disable-pip-version-check", "--target", str(target), str(project),
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=100)


class Installation:
    """What pip installed beside stagewire."""

    def __init__(self, site: Path, folder: Path) -> None:
        self.site = site
        self.folder = folder

    def stagewire(self, *arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stagewire", *(str(each) for each in arguments)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.site), **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def pipeline(self, text: str = PIPELINE) -> Path:
        path = self.folder / "echo.yaml"
        path.write_text(text)
        return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as pip installs it, and a second one whose import fails."""
    site = tmp_path_factory.mktemp("site")
    pip_install(ECHO, site)
    mute = tmp_path_factory.mktemp("projects") / "stagewire-mute"
    shutil.copytree(ECHO, mute, ignore=shutil.ignore_patterns("__pycache__"))
    (mute / "stagewire_echo").rename(mute / "stagewire_mute")
    project = (mute / "pyproject.toml").read_text()
    (mute / "pyproject.toml").write_text(project.replace("echo", "mute"))
    (mute / "stagewire_mute" / "__init__.py").write_text("raise RuntimeError('lost its voice')\n")
    pip_install(mute, site)
    return site


@pytest.fixture
def installation(site: Path, tmp_path: Path) -> Installation:
    return Installation(site, tmp_path)


def listed(installation: Installation, **environ: str) -> dict[str, Any]:
    done = installation.stagewire("plugins", "list", "--json", **environ)
    assert done.returncode == 0
    return {plugin["name"]: plugin for plugin in json.loads(done.stdout)}


def test_the_plugin_is_loaded_and_the_broken_one_is_told_from_it(installation: Installation) -> None:
    plugins = listed(installation)
    echo, mute = plugins["echo"], plugins["mute"]
    assert (echo["state"], echo["distribution"], echo["version"]) == ("loaded", "stagewire-echo", "1.2.3")
    assert echo["providers"] == {"stages": ["echo.echo"]}
    assert (mute["state"], mute["distribution"]) == ("broken", "stagewire-mute")
    assert "RuntimeError: lost its voice (at " in mute["reasons"][0]
    assert plugins["examples"]["state"] == "loaded"


def test_its_options_are_shown_and_are_part_of_the_schema(installation: Installation) -> None:
    shown = installation.stagewire("plugins", "show", "echo.echo").stdout
    assert "times    integer  1        How often each chunk is said." in shown
    assert "How often each chunk is said." in installation.stagewire("schema").stdout


def test_its_stage_runs_from_yaml(installation: Installation) -> None:
    (installation.folder / "in.txt").write_text("One sentence. Another one.")
    done = installation.stagewire("run", installation.pipeline(), "--input", "in.txt", "--output", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert (installation.folder / "out" / "echo.txt").read_text().splitlines() == [
        "One sentence.", "One sentence.", "Another one.", "Another one.",
    ]  # fmt: skip


def test_a_wrong_option_is_located(installation: Installation) -> None:
    done = installation.stagewire("check", installation.pipeline(PIPELINE.replace("times: 2", "tiems: 2")))
    assert done.returncode == 2
    assert ":6:26: stages.echo.tiems: unknown key; did you mean 'times'?" in done.stderr


def test_a_stage_of_the_broken_plugin_is_located_and_its_error_told(installation: Installation) -> None:
    pipeline = installation.pipeline(PIPELINE.replace("echo.echo, times: 2", "mute.mute"))
    done = installation.stagewire("check", pipeline)
    assert done.returncode == 2
    assert f"{pipeline}:6:15: stages.echo.use: stage 'mute.mute' cannot be used" in done.stderr
    assert "RuntimeError: lost its voice" in done.stderr
    assert "STAGEWIRE_PLUGINS_BLOCK=mute" in done.stderr


def test_a_blocked_plugin_is_not_imported(installation: Installation) -> None:
    plugins = listed(installation, STAGEWIRE_PLUGINS_BLOCK="mute,echo")
    assert (plugins["mute"]["state"], plugins["echo"]["state"]) == ("blocked", "blocked")


def test_the_doctor_exits_1_for_the_broken_one_and_0_without_it(installation: Installation) -> None:
    broken = installation.stagewire("doctor")
    assert broken.returncode == 1
    assert "lost its voice" in broken.stdout
    assert installation.stagewire("doctor", STAGEWIRE_PLUGINS_ALLOW="echo,examples,local").returncode == 0
