"""What asyncio sources must not use: ``Condition.notify(n)`` loses wake-ups, ``wait_for`` swallows a cancel on 3.11."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted(path for root in ("core", "plugins", "transports") for path in (ROOT / root).rglob("*.py"))


def imported(tree: ast.Module) -> set[str]:
    """The names of the modules that a source imports, and the names that it imports from asyncio."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")[0]
            names.add(module)
            if module == "asyncio":
                names |= {f"asyncio.{alias.name}" for alias in node.names}
    return names


def faults(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    names = imported(tree)
    yield from (f"from {name}" for name in sorted({"asyncio.wait_for", "asyncio.Condition"} & names))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if isinstance(node.value, ast.Name) and node.value.id == "asyncio" and node.attr in {"wait_for", "Condition"}:
            yield f"asyncio.{node.attr} in line {node.lineno}"
        if node.attr == "notify" and "asyncio" in names and "threading" not in names:
            yield f"notify in line {node.lineno}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_csp_trap_asyncio_sources_use_neither_condition_nor_wait_for(path: Path) -> None:
    assert list(faults(path.read_text())) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import asyncio\nasyncio.wait_for(x, 1)", ["asyncio.wait_for in line 2"]),
        ("from asyncio import wait_for", ["from asyncio.wait_for"]),
        ("import asyncio\nc = asyncio.Condition()\nc.notify(2)", ["asyncio.Condition in line 2", "notify in line 3"]),
        ("import threading\nc = threading.Condition()\nc.notify()", []),
        ("import asyncio, threading\nc = threading.Condition()\nc.notify()", []),
        ("import asyncio\nasyncio.timeout(1)", []),
    ],
)
def test_the_rule_finds_what_it_forbids_and_nothing_else(source: str, found: list[str]) -> None:
    assert list(faults(source)) == found
