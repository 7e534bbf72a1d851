"""The parsed file as a tree: every value and every key knows its line and column."""

from __future__ import annotations

from dataclasses import dataclass

from stagewire.errors import Location

Where = tuple[str | int, ...]
"""The path of a value: keys of maps and indexes of lists, from the root."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of one key of a map, and where the key stands."""

    key: Location
    node: Node


@dataclass(slots=True, eq=False)
class Node:
    """One value of a file. An alias is the same node as its anchor, so the tree is a graph without cycles.

    Attributes:
        value: A scalar, the nodes of a list, or the entries of a map.
        location: Where the value begins.
        text: What a scalar looks like in the file, without quotes; it is the name when the scalar is a key.
        plain: Whether it is a scalar without quotes and without a tag.
        faulty: Whether a fault of it has been reported, so that faults which follow from that one need not be.
        size: How many values it expands to, itself included.
        height: How many levels of collections it has, itself included.
    """

    value: Scalar | list[Node] | dict[str, Entry]
    location: Location
    text: str = ""
    plain: bool = False
    faulty: bool = False
    size: int = 1
    height: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may hold. Anchors count as often as they are used, which is what stops a YAML bomb."""

    bytes: int = 512 * 1024
    values: int = 50_000
    depth: int = 64
    key: int = 256


LIMITS = Limits()
