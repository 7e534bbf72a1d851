"""Grows a tree from YAML events, one by one, within the limits.

The events are used instead of ruamel's own objects because a limit must hold *while* a file is read: the builder
stops at the value that is one too many, before anything was expanded. It never recurses, so deep nesting is a
problem with a line number and not a `RecursionError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from stagewire.config.scalars import TAGS, as_tagged, resolve
from stagewire.config.source import Unreadable
from stagewire.config.tree import LIMITS, Entry, Node, Where
from stagewire.errors import Location, Problem, bounded

_CORE_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    node: Node
    anchor: str | None
    key: Node | None = None
    merges: list[Node] = field(default_factory=list)

    @property
    def cursor(self) -> str | int | None:
        if isinstance(self.node.value, list):
            return len(self.node.value)
        return self.key.text if self.key else None


class TreeBuilder:
    """Takes the events of one file. Faults that leave the rest usable go to ``problems``.

    Attributes:
        root: The tree, once every event was fed.
        last: Where the value began that was fed last.
    """

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.root: Node | None = None
        self.last = Location(path, 1, 1)
        self._path = path
        self._problems = problems
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._documents = 0

    def feed(self, event: Any) -> None:
        """Take the next event. Raises `Unreadable` at the value that is beyond a limit."""
        if isinstance(event, DocumentStartEvent):
            self._document(event)
        elif isinstance(event, CollectionEndEvent):
            self._close()
        elif isinstance(event, NodeEvent):
            self.last = self.locate(event.start_mark)
            self._node(event)

    def locate(self, mark: Any) -> Location:
        """Return the place of one of ruamel's marks, which count from 0."""
        return Location(self._path, mark.line + 1, mark.column + 1)

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise Unreadable(
                Problem("a second document begins; a configuration is one document", (), self.locate(event.start_mark))
            )

    def _node(self, event: Any) -> None:
        if isinstance(event, AliasEvent):
            self._add(self._alias(str(event.anchor)))
        elif isinstance(event, ScalarEvent):
            self._add(self._anchored(self._scalar(event), event.anchor))
        elif isinstance(event, CollectionStartEvent):
            self._begin(event)

    def _scalar(self, event: Any) -> Node:
        text = str(event.value)
        tag = None if event.tag in (None, "!") else str(event.tag)
        plain = bool(event.implicit[0])
        node = Node(resolve(text) if plain else text, self.last, text, plain=plain and tag is None)
        if tag is not None:
            self._apply_tag(node, tag)
        return node

    def _apply_tag(self, node: Node, tag: str) -> None:
        name = tag.removeprefix(_CORE_TAG)
        if not tag.startswith(_CORE_TAG) or name not in TAGS:
            self._unsupported(node, tag)
            return
        try:
            node.value = as_tagged(node.text, name)
        except ValueError:
            node.faulty = True
            self._report(f"tag '!!{name}': {bounded(node.text, 60)!r} is not {TAGS[name]}", node.location)

    def _unsupported(self, node: Node, tag: str) -> None:
        node.faulty = True
        shown = f"!!{tag.removeprefix(_CORE_TAG)}" if tag.startswith(_CORE_TAG) else tag
        self._report(f"unsupported tag {bounded(shown, 60)!r}; remove it", node.location)

    def _begin(self, event: Any) -> None:
        mapping = isinstance(event, MappingStartEvent)
        node = Node({} if mapping else [], self.last, height=1)
        expected = _CORE_TAG + ("map" if mapping else "seq")
        if event.tag not in (None, "!", expected):
            self._unsupported(node, str(event.tag))
        self._check_depth(node)
        self._open.append(_Open(node, event.anchor))

    def _close(self) -> None:
        done = self._open.pop()
        for source in done.merges:
            self._merge(done.node, source)
        self._add(self._anchored(done.node, done.anchor))

    def _anchored(self, node: Node, anchor: str | None) -> Node:
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, name: str) -> Node:
        if any(opened.anchor == name for opened in self._open):
            return self._bad_alias(f"alias '*{bounded(name, 60)}' stands inside what it refers to")
        if name not in self._anchors:
            return self._bad_alias(f"alias '*{bounded(name, 60)}' has no anchor '&{bounded(name, 60)}' before it")
        return self._anchors[name]

    def _bad_alias(self, message: str) -> Node:
        self._report(message, self.last)
        return Node(None, self.last, faulty=True)

    def _add(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        self._grow(parent.node, node)
        if isinstance(parent.node.value, list):
            parent.node.value.append(node)
        elif parent.key is None:
            parent.key = node
        else:
            self._pair(parent, parent.key, node)
            parent.key = None

    def _grow(self, parent: Node, child: Node) -> None:
        parent.size += child.size
        parent.height = max(parent.height, child.height + 1)
        if parent.size > LIMITS.values:
            message = f"holds more than {LIMITS.values:,} values once its anchors are expanded; make it smaller"
            raise Unreadable(Problem(message, (), self.last))
        self._check_depth(child)

    def _check_depth(self, node: Node) -> None:
        if len(self._open) + node.height > LIMITS.depth:
            raise Unreadable(Problem(f"is nested deeper than {LIMITS.depth} levels", (), self.last))

    def _pair(self, parent: _Open, key: Node, node: Node) -> None:
        if key.plain and key.text == _MERGE:
            parent.merges += self._merge_sources(node)
        elif fault := _key_fault(key):
            self._report(fault, key.location, parent=True)
        else:
            self._enter(parent.node, key, node)

    def _enter(self, parent: Node, key: Node, node: Node) -> None:
        assert isinstance(parent.value, dict)
        first = parent.value.get(key.text)
        if first is None:
            parent.value[key.text] = Entry(key.location, node)
            return
        self._report(f"duplicate key; it is also at line {first.key.line}, keep one of them", key.location)

    def _merge_sources(self, node: Node) -> list[Node]:
        sources = node.value if isinstance(node.value, list) else [node]
        if all(isinstance(source.value, dict) for source in sources):
            return sources
        if not node.faulty:
            self._report("'<<' takes a map or a list of maps", node.location)
        return []

    @staticmethod
    def _merge(target: Node, source: Node) -> None:
        """What the map itself says wins, then the source named first."""
        assert isinstance(target.value, dict)
        assert isinstance(source.value, dict)
        for key, entry in source.value.items():
            target.value.setdefault(key, entry)

    def _report(self, message: str, location: Location, *, parent: bool = False) -> None:
        opened = self._open[:-1] if parent else self._open
        path: Where = tuple(part for frame in opened if (part := frame.cursor) is not None)
        self._problems.append(Problem(message, path, location))


def _key_fault(key: Node) -> str:
    if isinstance(key.value, list | dict):
        return "a key must be a single text, not a map or a list"
    if not key.text:
        return "a key must not be empty"
    if len(key.text) > LIMITS.key:
        return f"a key must not be longer than {LIMITS.key} characters"
    return ""
