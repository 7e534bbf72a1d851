"""The JSON Schema of a whole configuration file, made from the plugins that are installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind, models_json_schema
from pydantic_core import core_schema

from stagewire.config import references
from stagewire.config.models import Sections, UseBlock
from stagewire.config.references import admit
from stagewire.spec.provider import Axis, Provider

if TYPE_CHECKING:
    from stagewire.registry import Catalog

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_AXES: tuple[Axis, ...] = ("pipelines", "stages", "transports", "kv_backends", "lease_backends")
_AXIS_MARK = "x-stagewire-axis"


def json_schema(catalog: Catalog) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a configuration file.

    One branch per pipeline kind; within it each ``use:`` block is one branch per provider. Unknown keys are forbidden
    where the options models forbid them. Where a number, a choice or a bounded text is due, a text with an ``${env:…}``
    reference will do as well.
    """
    models = _Models(catalog)
    definitions = {name: models.expand(schema) for name, schema in models.definitions.items()}
    branches = [models.choose(models.of(Sections), "pipeline", kind) for kind in catalog.providers("pipelines")]
    whole = admit({"oneOf": [*branches, _chosen_elsewhere("pipeline")], "$defs": definitions})
    whole["$defs"][references.NAME] = dict(references.DEFINITION)
    return {"$schema": DIALECT, "title": "A stagewire configuration", **whole}


class _Generator(GenerateJsonSchema):
    """Marks the blocks, and admits anything where a plugin's type has no schema."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Say nothing: a default that JSON cannot hold is left out of the schema, which loses nothing."""

    def handle_invalid_for_json_schema(self, schema: core_schema.CoreSchema, error_info: str) -> JsonSchemaValue:
        del schema, error_info
        return {}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        result = super().model_schema(schema)
        if issubclass(schema["cls"], UseBlock):
            result[_AXIS_MARK] = schema["cls"].axis
        return result


class _Models:
    """The schemas of all options models, by model and by name."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        providers = [provider for axis in _AXES for provider in catalog.providers(axis)]
        models: list[type[BaseModel]] = [Sections, *(provider.options for provider in providers)]
        usable = [model for model in dict.fromkeys(models) if _has_schema(model)]
        self._refs, definitions = models_json_schema(
            [(model, "validation") for model in usable], schema_generator=_Generator
        )
        self.definitions: dict[str, dict[str, Any]] = definitions.get("$defs", {})

    def of(self, model: type[BaseModel]) -> dict[str, Any]:
        """The object schema of a model; an empty one, which admits anything, when it has none."""
        schema = self._refs.get((model, "validation"), {})
        while "$ref" in schema:
            schema = self.definitions[schema["$ref"].rpartition("/")[2]]
        return schema if "properties" in schema or schema.get("type") == "object" else {}

    def expand(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A block's schema as a choice between the providers of its axis; any other as it is."""
        axis: Axis | None = schema.get(_AXIS_MARK)
        if axis is None:
            return schema
        choices = [self.choose(schema, "use", provider) for provider in self._catalog.providers(axis)]
        kept = {key: value for key, value in schema.items() if key in ("title", "description")}
        return {**kept, "oneOf": [*choices, _chosen_elsewhere("use")]}

    def choose(self, around: Mapping[str, Any], key: str, provider: Provider[Any]) -> dict[str, Any]:
        """The schema of what stands around the choice, with the provider chosen and its options added."""
        options = self.of(provider.options)
        required = [*around.get("required", ()), *options.get("required", ())]
        chosen = {"const": provider.name, "description": provider.summary}
        return {
            "type": "object",
            "title": provider.name,
            "properties": {key: chosen, **options.get("properties", {}), **_without(around["properties"], key)},
            "required": list(dict.fromkeys(required)),
            "additionalProperties": options.get("additionalProperties", True),
        }


def _without(properties: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: schema for name, schema in properties.items() if name != key}


def _has_schema(model: type[BaseModel]) -> bool:
    try:
        model.model_json_schema(schema_generator=_Generator)
    except Exception:  # noqa: BLE001 — a plugin's own schema code may raise anything; the others' schemas still count
        return False
    return True


def _chosen_elsewhere(key: str) -> dict[str, Any]:
    """When the environment makes the choice, nothing is known of the other keys."""
    return {
        "type": "object",
        "title": "chosen by the environment",
        "properties": {key: dict(references.REFERENCE)},
        "required": [key],
    }
