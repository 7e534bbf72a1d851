"""The files of one configuration as plain data, every value of which knows where it came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stagewire.config.env import Filler
from stagewire.config.overlay import overlay
from stagewire.config.tree import Entry, Node, Where
from stagewire.errors import ConfigError, Location, Problem

MOST_PROBLEMS = 200
"""More faults than this are counted, not described: nobody reads them, and describing each costs time."""


@dataclass(frozen=True, slots=True)
class Document:
    """What the files say together, overlays laid and references filled in. Nothing of it is validated.

    Attributes:
        files: The files, in order.
        data: Maps, lists and scalars. May hold secrets in plain text; ``repr`` leaves it out.
        origins: Where each value stands, by its path.
        keys: Where the key of each value stands.
        env: The environment variables whose values a text took.
    """

    files: tuple[Path, ...]
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    origins: dict[Where, Location] = field(default_factory=dict, repr=False)
    keys: dict[Where, Location] = field(default_factory=dict, repr=False)
    env: dict[Where, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def prefix(self, path: Where) -> Where:
        """Return the longest beginning of ``path`` that the files have a value for."""
        while path and path not in self.origins:
            path = path[:-1]
        return path

    def value(self, path: Where) -> Any:
        """Return the value at ``path``, which the files must have."""
        found: Any = self.data
        for part in path:
            found = found[part]
        return found

    def locate(self, path: Where) -> Location:
        """Return where a reader should look for ``path``, or for what should hold it when the files do not have it.

        That is the value; for a map or list that begins below its key, the key.
        """
        known = self.prefix(path)
        value, key = self.origins[known], self.keys.get(known)
        return key if key is not None and (key.file, key.line) != (value.file, value.line) else value

    def locate_key(self, path: Where) -> Location:
        """Return where the key of ``path`` stands, or what `locate` says when the files do not have it."""
        return self.keys.get(path) or self.locate(path)

    def placed(self, error: ConfigError) -> ConfigError:
        """Return the same error, each problem with its place in the files, also where only its path is known."""
        return ConfigError([replace(each, location=each.location or self.locate(each.path)) for each in error.problems])


@dataclass(frozen=True, slots=True)
class Reading:
    """A document with the faults found so far; ``faulty`` holds the paths whose values are not to be trusted."""

    document: Document | None
    problems: list[Problem]
    faulty: frozenset[Where] = frozenset()


def load_document(paths: Sequence[Path], environ: Mapping[str, str] = os.environ) -> Document:
    """Read the files, lay each over those before it, and fill in what refers to the environment.

    Raises:
        ConfigError: With every fault: a syntax error, a duplicate key, a missing file or variable, … A file that
            cannot be understood does not hide the faults of the others.
    """
    reading = read_document(paths, environ)
    if reading.document is None or reading.problems:
        raise ConfigError(arrange(reading.problems, paths))
    return reading.document


def read_document(paths: Sequence[Path], environ: Mapping[str, str]) -> Reading:
    """Do what `load_document` does, but return the faults, and the document wherever there is something to validate."""
    from stagewire.config.parse import read_tree  # noqa: PLC0415 — ruamel.yaml takes 0.1 s that `--help` need not pay

    if not paths:
        raise ConfigError([Problem("no configuration file was named")])
    problems: list[Problem] = []
    trees = [read_tree(path, problems) for path in paths]
    whole = [tree for tree in trees if tree is not None]
    if len(whole) < len(trees):
        return Reading(None, problems)
    flattener = _Flattener(tuple(paths), environ)
    flattener.document.data.update(flattener.map_of(overlay(whole)))
    return Reading(flattener.document, _distinct(problems + flattener.problems), frozenset(flattener.faulty))


def arrange(problems: Sequence[Problem], paths: Sequence[Path], more: int = 0) -> list[Problem]:
    """Sort by file, line and column, and cut to ``MOST_PROBLEMS``; what has no place comes last.

    Faults of one place keep their order. ``more`` were found that are not described.
    """
    problems = _in_file_order(problems, paths)
    more += max(0, len(problems) - MOST_PROBLEMS)
    return problems[:MOST_PROBLEMS] + [Problem(f"{more} more faults; mend these first")] * bool(more)


def _in_file_order(problems: Sequence[Problem], paths: Sequence[Path]) -> list[Problem]:
    order: dict[Path | str, int] = {}
    for number, path in enumerate(paths):
        order.setdefault(path, number)

    def place(problem: Problem) -> tuple[float, int, int]:
        found = problem.location
        return (order.get(found.file, len(order)), found.line, found.column) if found else (float("inf"), 0, 0)

    return sorted(_distinct(problems), key=place)


def _distinct(problems: Sequence[Problem]) -> list[Problem]:
    """A fault in an anchor is met again at each alias: the same place, key and message, under another path."""
    first: dict[object, Problem] = {}
    for problem in problems:
        first.setdefault((problem.location, problem.path[-1:], problem.message), problem)
    return list(first.values())


class _Flattener:
    """Turns the tree into data, expanding aliases and filling in references."""

    def __init__(self, paths: tuple[Path, ...], environ: Mapping[str, str]) -> None:
        self.document = Document(paths)
        self.problems: list[Problem] = []
        self.faulty: set[Where] = set()
        self._filler = Filler(environ)

    def map_of(self, root: Node) -> dict[str, Any]:
        data = self._value(root, ())
        assert isinstance(data, dict)
        return data

    def _value(self, node: Node, at: Where) -> Any:
        self.document.origins[at] = node.location
        if node.faulty:
            self.faulty.add(at)
        if isinstance(node.value, dict):
            return {key: self._entry(entry, (*at, key)) for key, entry in node.value.items()}
        if isinstance(node.value, list):
            return [self._value(item, (*at, index)) for index, item in enumerate(node.value)]
        return self._text(node.value, node, at) if isinstance(node.value, str) else node.value

    def _entry(self, entry: Entry, at: Where) -> Any:
        self.document.keys[at] = entry.key
        return self._value(entry.node, at)

    def _text(self, text: str, node: Node, at: Where) -> str:
        filled = self._filler.fill(text)
        if filled.used:
            self.document.env[at] = tuple(dict.fromkeys(filled.used))
        if filled.faults:
            self.faulty.add(at)
            self.problems += [Problem(fault, at, node.location) for fault in filled.faults]
        return filled.text
