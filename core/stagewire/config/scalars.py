"""Plain scalars by the YAML 1.2 core schema: null, true and false, integers, numbers; all else is text.

``yes``, ``on``, ``12:30`` and ``2024-01-01`` are therefore text, whatever a ``%YAML`` directive says.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stagewire.config.tree import Scalar

_LONGEST_NUMBER = 200
"""Longer digits are text: nobody means them, and converting them takes quadratic time."""

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")

_CORE: tuple[tuple[re.Pattern[str], str, Callable[[str], Scalar]], ...] = (
    (_NULL, "null", lambda _text: None),
    (_TRUE, "bool", lambda _text: True),
    (_FALSE, "bool", lambda _text: False),
    (_DECIMAL, "int", int),
    (_BASED, "int", lambda text: int(text, 0)),
    (_FLOAT, "float", float),
    (_INFINITY, "float", lambda text: float(text.replace(".", ""))),
    (_NAN, "float", lambda _text: float("nan")),
)

TAGS = {"str": "a text", "int": "an integer", "float": "a number", "bool": "true or false", "null": "null"}
"""The names of the core schema's scalar tags, without their common prefix, and what each stands for."""


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar."""
    return _lookup(text)[1]


def as_tagged(text: str, tag: str) -> Scalar:
    """Return the value of a scalar with an explicit core tag; raises `ValueError` when the text is no such value."""
    if tag == "str":
        return text
    found, value = _lookup(text)
    if tag == "float" and found == "int" and isinstance(value, int):
        return float(value)
    if found != tag:
        raise ValueError(text)
    return value


def _lookup(text: str) -> tuple[str, Scalar]:
    if len(text) <= _LONGEST_NUMBER:
        for pattern, tag, convert in _CORE:
            if pattern.fullmatch(text):
                return tag, convert(text)
    return "str", text
