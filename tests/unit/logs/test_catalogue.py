"""Code and catalogue agree, both ways: what is emitted is in it, and what is in it is emitted, with all its fields."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from stagewire import Event
from stagewire.events import CATALOGUE, COMMON_FIELDS
from stagewire_logs.facts import FACTS
from stagewire_logs.findings import _TOLD, _WARNINGS
from stagewire_logs.requests import REQUEST_EVENTS

ROOT = Path(__file__).parents[3]
FOLDERS = ("core", "plugins", "transports")
READERS = ("stagewire_logs", "events.py")
"""What names events without emitting them."""


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not set(path.parts) & set(READERS):
                yield path


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def words(path: Path) -> frozenset[str]:
    """Every name that could be a field's: keywords of calls, texts, attributes, annotated names."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        match node:
            case ast.keyword(arg=str(name)) | ast.Attribute(attr=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Constant(value=str(text)):
                found.add(text)
    return frozenset(found)


def package_of(path: Path) -> Path:
    """The package that a file belongs to."""
    return ROOT.joinpath(*path.relative_to(ROOT).parts[:2])


@pytest.mark.parametrize("known", CATALOGUE.values(), ids=lambda known: known.name)
def test_every_event_of_the_catalogue_is_emitted_with_all_its_fields(known: Event) -> None:
    emitting = [path for path in sources() if known.name in words(path)]
    assert emitting, f"nothing emits {known.name}: take it out of stagewire.events"
    packages = {package_of(path) for path in emitting}
    there = {word for path in sources() if package_of(path) in packages for word in words(path)}
    assert known.fields <= there, f"nothing gives {known.name} the fields {sorted(known.fields - there)}"


def direct_calls() -> Iterator[tuple[str, str, list[ast.keyword]]]:
    for path in sources():
        for node in ast.walk(tree(path)):
            match node:
                case ast.Call(func=ast.Name("emit"), args=[_, ast.Constant(str(name))], keywords=keywords):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", name, keywords


def test_every_event_that_the_sources_emit_is_in_the_catalogue_with_its_fields() -> None:
    faults = []
    for where, name, keywords in direct_calls():
        known = CATALOGUE.get(name)
        given = {keyword.arg for keyword in keywords if keyword.arg}
        unknown = given - COMMON_FIELDS - known.fields if known else {"(no such event)"}
        faults += [f"{where}: {name}: {', '.join(sorted(unknown))}"] if unknown else []
    assert faults == []


def test_events_whose_fields_stand_in_their_calls_have_no_other_fields() -> None:
    given: dict[str, set[str]] = {}
    open_ended = set()
    for _, name, keywords in direct_calls():
        given.setdefault(name, set()).update(keyword.arg for keyword in keywords if keyword.arg)
        open_ended |= {name for keyword in keywords if keyword.arg is None}
    emitted_elsewhere = {
        name
        for name in given
        if sum(text == name for path in sources() for text in texts(path))
        > sum(name == each for _, each, _ in direct_calls())
    }
    spare = {
        name: CATALOGUE[name].fields - fields
        for name, fields in given.items()
        if name not in open_ended | emitted_elsewhere and CATALOGUE[name].fields - fields
    }
    assert spare == {}


@cache
def texts(path: Path) -> tuple[str, ...]:
    return tuple(
        node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_the_documentation_of_the_events_is_current() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "events_doc.py"))
    assert (ROOT / "docs" / "events.md").read_text() == script["document"](), "run python scripts/events_doc.py"


def test_the_analyses_ask_only_for_events_that_there_are() -> None:
    areas = {name.partition(".")[0] for name in CATALOGUE}
    asked = FACTS | REQUEST_EVENTS | _TOLD | _WARNINGS.keys()
    assert {name for name in asked if name.partition(".")[0] in areas} <= CATALOGUE.keys()
