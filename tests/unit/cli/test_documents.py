"""The programs of the documents run as they stand, and print what the documents say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

DOCS = Path(__file__).resolve().parents[3] / "docs"


def programs(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / document).read_text(), re.DOTALL)


def program(document: str, word: str) -> str:
    (found,) = [text for text in programs(document) if word in text]
    return str(found)


@pytest.mark.parametrize(
    ("word", "printed"),
    [
        ("Orchestrator(", "0 hi False\n0 there False\n1 THERE HI True\n"),
        ("ChunkAdapter(", "r1 {'tokens': [1, 2]} False\nr1 {'tokens': [3]} True\n"),
    ],
)
def test_a_program_of_the_guide_prints_what_the_guide_says(word: str, printed: str) -> None:
    command = [sys.executable, "-W", "error", "-c", program("guide.md", word)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)
    text = " ".join((DOCS / "guide.md").read_text().split())
    assert all(f"`{line}`" in text for line in printed.splitlines())


def test_the_plugin_of_the_document_passes_the_suite_of_the_document(tmp_path: Path) -> None:
    package = tmp_path / "stagewire_shout"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text(program("plugins.md", "class ShoutOptions"))
    (tmp_path / "test_shout.py").write_text(program("plugins.md", "class TestShout"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "--rootdir",
        str(tmp_path),
    ]
    done = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
