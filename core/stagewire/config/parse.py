"""YAML to a tree, by ruamel.yaml's events; what is no YAML becomes a fault in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from stagewire.config.builder import TreeBuilder
from stagewire.config.source import Unreadable, read_text
from stagewire.config.tree import Node
from stagewire.errors import Location, Problem, bounded


def read_tree(path: Path, problems: list[Problem]) -> Node | None:
    """Parse a file; its faults are appended to ``problems``. ``None``: nothing of it can be used."""
    try:
        return parse(read_text(path), path, problems)
    except Unreadable as error:
        problems.append(error.problem)
        return None


def parse(text: str, path: Path, problems: list[Problem]) -> Node:
    """Parse one document whose top level is a map. Faults that leave the rest usable go to ``problems``.

    Raises:
        Unreadable: The text is no YAML, is not a map, or is beyond the limits.
    """
    builder = TreeBuilder(path, problems)
    for event in _events(text, builder):
        builder.feed(event)
    root = builder.root
    if root is None or root.value is None:
        raise Unreadable(Problem("the file is empty; a configuration begins with 'version: 1'", (), _start(path)))
    if not isinstance(root.value, dict):
        kind = "a list" if isinstance(root.value, list) else "a single value"
        raise Unreadable(Problem(f"the top level must be a map of keys, not {kind}", (), root.location))
    return root


def _start(path: Path) -> Location:
    return Location(path, 1, 1)


def _events(text: str, builder: TreeBuilder) -> Iterator[Any]:
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except Unreadable:
        raise
    except MarkedYAMLError as error:
        raise Unreadable(_syntax_error(error, text, builder)) from None
    except Exception as error:  # noqa: BLE001 — the scanner lets int(), chr() and index errors of bad text escape
        reason = bounded(str(error) or type(error).__name__, 200)
        raise Unreadable(Problem(f"syntax error after this place: {reason}", (), builder.last)) from None


def _syntax_error(error: MarkedYAMLError, text: str, builder: TreeBuilder) -> Problem:
    mark = error.problem_mark or error.context_mark
    location = builder.locate(mark) if mark else builder.last
    message = f"syntax error: {bounded(str(error.problem), 200)}"
    if error.context and error.context_mark and error.context_mark.line != location.line - 1:
        message += f" ({error.context} that begins at line {error.context_mark.line + 1})"
    return Problem(message + _syntax_hint(text, location), (), location)


def _syntax_hint(text: str, location: Location) -> str:
    before = _line(text, location.line)[: location.column - 1]
    if before.endswith("$"):
        return "; inside [ ] and { } put a text with ${…} in quotes"
    if not before.strip(" \t") and "\t" in _line(text, location.line)[: location.column]:
        return "; indent with spaces, not with tabs"
    return ""


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if number <= len(lines) else ""
