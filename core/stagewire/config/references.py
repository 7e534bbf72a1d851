"""Lets a text with an ``${env:…}`` reference stand in a JSON Schema wherever such a text would not be valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stagewire.config.env import REFERENCE_PATTERN

NAME = "EnvReference"
REFERENCE: Mapping[str, str] = {"$ref": f"#/$defs/{NAME}"}
DEFINITION: Mapping[str, str] = {
    "type": "string",
    "pattern": REFERENCE_PATTERN,
    "description": "A text that takes a value from the environment.",
}

_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated"})
_MAPS = frozenset({"properties", "patternProperties", "$defs"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties"})
_TEXT_BOUNDS = frozenset({"minLength", "maxLength", "pattern"})
_NO_TEXT = frozenset({"integer", "number", "boolean"})


def admit(schema: Any) -> Any:
    """Return the schema with references admitted, at every depth. A ``const`` stays: branches are told apart by it."""
    if not isinstance(schema, dict):
        return schema
    if _refuses(schema):
        kept = {key: value for key, value in schema.items() if key in _ANNOTATIONS}
        bare = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
        return {**kept, "anyOf": [bare, dict(REFERENCE)]}
    return {keyword: _admit_in(keyword, value) for keyword, value in schema.items()}


def _admit_in(keyword: str, value: Any) -> Any:
    if keyword in _MAPS:
        return {name: admit(each) for name, each in value.items()}
    if keyword in _LISTS:
        return [admit(each) for each in value]
    return admit(value) if keyword in _SINGLE else value


def _refuses(schema: Mapping[str, Any]) -> bool:
    if "const" in schema:
        return False
    bounded_text = schema.get("type") == "string" and not _TEXT_BOUNDS.isdisjoint(schema)
    return "enum" in schema or schema.get("type") in _NO_TEXT or bounded_text
