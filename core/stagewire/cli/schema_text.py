"""An options model as a schema and in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, PydanticUserError

from stagewire.cli.tables import table


def options_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of an options model; an empty one when its types have none."""
    try:
        return model.model_json_schema()
    except PydanticUserError:
        return {}


def option_lines(schema: Mapping[str, Any]) -> Iterator[str]:
    """Give a table of the options: key, type, default, what it does; and one of each model that they consist of."""
    if not schema.get("properties"):
        yield "no options" if schema else "options that cannot be described"
        return
    yield from _table("options", schema)
    for name, part in sorted(schema.get("$defs", {}).items()):
        if part.get("properties"):
            yield from _table(name, part)


def _table(title: str, schema: Mapping[str, Any]) -> Iterator[str]:
    required = set(schema.get("required", ()))
    rows = [
        (name, _type(option), "required" if name in required else _default(option), _description(option))
        for name, option in schema["properties"].items()
    ]
    yield ""
    yield from table(rows, (title, "type", "default", ""), indent=0).splitlines()


def _description(option: Mapping[str, Any]) -> str:
    return " ".join(option.get("description", "").split())


def _type(option: Mapping[str, Any]) -> str:
    if "$ref" in option:
        return str(option["$ref"]).rpartition("/")[2]
    if "enum" in option or "const" in option:
        return " | ".join(json.dumps(value) for value in option.get("enum", [option.get("const")]))
    for key in ("anyOf", "oneOf", "allOf"):
        if key in option:
            return " | ".join(_type(each) for each in option[key])
    return _container(option) or str(option.get("type", "anything"))


def _container(option: Mapping[str, Any]) -> str | None:
    if option.get("type") == "array":
        return f"list of {_type(option.get('items', {}))}"
    if option.get("type") == "object" and isinstance(values := option.get("additionalProperties"), dict):
        return f"map of {_type(values)}"
    return None


def _default(option: Mapping[str, Any]) -> str:
    return json.dumps(option["default"], ensure_ascii=False) if "default" in option else ""
