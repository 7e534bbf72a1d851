"""An options model as a schema and in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, PydanticUserError


def options_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of an options model; an empty one when its types have none."""
    try:
        return model.model_json_schema()
    except PydanticUserError:
        return {}


def option_lines(schema: Mapping[str, Any]) -> Iterator[str]:
    """Give a line for each option: its name, its type, its default, and what it does."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not properties:
        yield "no options" if schema else "options that cannot be described"
        return
    required = set(schema.get("required", ()))
    yield "options"
    widest = max(len(name) for name in properties)
    for name, option in properties.items():
        parts = [_type(option), "required" if name in required else _default(option), option.get("description", "")]
        yield f"    {name:<{widest}}  {'; '.join(' '.join(part.split()) for part in parts if part)}"


def _type(option: Mapping[str, Any]) -> str:
    if "$ref" in option:
        return str(option["$ref"]).rpartition("/")[2]
    if "enum" in option:
        return " | ".join(json.dumps(value) for value in option["enum"])
    if "const" in option:
        return json.dumps(option["const"])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in option:
            return " | ".join(_type(each) for each in option[key])
    if option.get("type") == "array":
        return f"list of {_type(option.get('items', {}))}"
    return str(option.get("type", "anything"))


def _default(option: Mapping[str, Any]) -> str:
    return f"default {json.dumps(option['default'])}" if "default" in option else "optional"
