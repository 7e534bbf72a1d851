"""What the documentation shows is what the program takes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from stagewire import App

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(kind: str) -> list[tuple[str, str]]:
    return [
        (f"{page.name}:{number}", text)
        for page in PAGES
        for number, (found, text) in enumerate(BLOCK.findall(page.read_text()))
        if found == kind
    ]


def whole_pipelines() -> list[tuple[str, str]]:
    return [(name, text) for name, text in blocks("yaml") if text.startswith("version:")]


def test_there_is_something_to_check() -> None:
    assert len(whole_pipelines()) >= 2
    assert len(blocks("python")) >= 5


@pytest.mark.parametrize(("name", "text"), whole_pipelines(), ids=lambda value: value.partition("\n")[0])
def test_every_pipeline_in_the_documentation_passes_the_check(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    app = App(environ={})
    app.build(app.load([file]))


@pytest.mark.parametrize(("name", "text"), blocks("python"), ids=lambda value: value.partition("\n")[0])
def test_every_python_example_is_python(name: str, text: str) -> None:
    compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing
