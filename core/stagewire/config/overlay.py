"""Lays one file over another: maps merge, lists and scalars replace, ``null`` deletes (RFC 7396)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from stagewire.config.tree import Entry, Node


def overlay(files: Sequence[Node]) -> Node:
    """Return the tree of the first file with the others laid over it, in order; no argument is changed.

    A ``null`` of the first file stays what it is. Laying a file over twice is the same as once.
    """
    return reduce(_over, files)


def _over(base: Node, top: Node) -> Node:
    if not isinstance(top.value, dict):
        return top
    entries = dict(base.value) if isinstance(base.value, dict) else {}
    for key, entry in top.value.items():
        if entry.node.value is None and not entry.node.faulty:
            entries.pop(key, None)
        else:
            entries[key] = Entry(entry.key, _over(entries[key].node if key in entries else _nothing(entry), entry.node))
    return Node(entries, top.location, faulty=top.faulty)


def _nothing(entry: Entry) -> Node:
    return Node({}, entry.key)
