"""The repository's shape: what the packaging, the floors and the house style demand and no other tool checks."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOTS = ("core", "plugins", "transports")
PUBLIC_MODULES = {
    "stagewire",
    "stagewire.claims",
    "stagewire.cli",
    "stagewire.codec",
    "stagewire.leases",
    "stagewire.lifecycle",
    "stagewire.testing",
}
"""What a plugin may import of the core."""


def packages() -> list[Path]:
    return sorted(path for root in ROOTS for path in (ROOT / root).iterdir() if path.name != "__pycache__")


def sources() -> list[Path]:
    return sorted(path for root in ROOTS for path in (ROOT / root).rglob("*.py"))


def tracked() -> list[Path]:
    listing = subprocess.run(("git", "ls-files", "-z"), cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("package", packages(), ids=lambda path: path.name)
def test_only_stagewire_packages_lie_in_the_three_roots(package: Path) -> None:
    assert package.is_dir(), f"{package} would become a top-level module of the wheel"
    assert package.name.startswith("stagewire")
    assert (package / "__init__.py").is_file()
    assert (package / "py.typed").is_file()


def test_every_entry_point_names_a_module_that_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, module in project["entry-points"]["stagewire.plugins"].items():
        path = module.replace(".", "/") + ".py"
        assert any((ROOT / root / path).is_file() for root in ROOTS), f"entry point {name} = {module}"
    declared = project["entry-points"]["stagewire.commands"].values()
    assert set(declared) <= set(project["entry-points"]["stagewire.plugins"].values())


def test_every_package_is_under_the_import_contracts() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert set(lint["root_packages"]) == {package.name for package in packages()}
    layered = {name.strip() for layer in lint["contracts"][0]["layers"] for name in re.split(r"[|:]", layer)}
    assert layered == {package.name for package in packages()}


def core_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "stagewire":
            yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "stagewire")


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_plugins_import_only_what_the_core_exports(path: Path) -> None:
    if path.is_relative_to(ROOT / "core"):
        return
    private = {name for name in core_imports(path) if name not in PUBLIC_MODULES}
    assert not private, f"{path.relative_to(ROOT)} reaches into {sorted(private)}"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 50, f"{node.name} at line {node.lineno} is too long"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_has_a_contract(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree) or not tree.body, f"{path.relative_to(ROOT)} has no docstring"
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node) or is_hook(node), f"{node.name} has no docstring"


def is_hook(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "hookimpl" for decorator in node.decorator_list)


FORBIDDEN = re.compile(r"pypi\.org|pythonhosted|/root/|/home/\w|/work/|\bTODO\b|\bFIXME\b|\bXXX\b")


def test_no_file_names_a_registry_host_or_a_machine_path() -> None:
    here = Path(__file__)
    for path in tracked():
        if path == here:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = FORBIDDEN.search(text)
        if found is not None:
            pytest.fail(f"{path.relative_to(ROOT)} holds {found.group()!r}")
