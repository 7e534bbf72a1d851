"""The JSON Schema takes what loads, and refuses what does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, ByteSize, ConfigDict, Field, GetJsonSchemaHandler, SecretStr
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from stagewire import Options, Provider, StageBlock
from stagewire.config import Config, json_schema, load_document
from stagewire.registry import Catalog

Make = Callable[..., Provider[Any]]
HEAD = "version: 1\npipeline: flow\n"


@pytest.fixture(scope="module")
def schema(catalog: Catalog) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(json_schema(catalog)))
    Draft202012Validator.check_schema(made)
    return made


def accepts(schema: dict[str, Any], text: str, folder: Path) -> bool:
    path = folder / "s.yaml"
    path.write_text(text)
    raw = load_document([path], {}) if "${" not in text else None
    data = raw.data if raw else json.loads(text)
    return bool(Draft202012Validator(schema).is_valid(data))


GOOD = [
    "stages: {}",
    "name: x\nstages: {x: {use: tone}, y: {use: read, path: in.txt, replicas: 2}}\nedges: [{from: x, to: y}]",
    "stages: {x: {use: tone, wpm: 5, volume: 0.5, loud: true, shape: square, title: null, pause: auto, gains: {a: 1}}}",
    "stages: {}\ntransport: {use: broker, token: t, login: {user: u}, url: 'amqp://h/'}\nlogging: {level: debug}",
    "stages: {}\ntransport: {use: wrap, inner: {use: wrap, inner: {use: local}}}",
    "stages: {}\nspare: [none, {use: tone}]\nkv: {use: memory}\nlease: {use: memory}",
]

WRONG = [
    "",
    "stages: []",
    "stages: {x: {}}",
    "stages: {x: {use: nothing}}",
    "stages: {x: {use: read}}",
    "stages: {x: {use: tone, wpn: 5}}",
    "stages: {x: {use: tone, wpm: fast}}",
    "stages: {x: {use: tone, wpm: 61}}",
    "stages: {x: {use: tone, shape: round}}",
    "stages: {x: {use: tone, replicas: 0}}",
    "stages: {x: {use: noop, wpm: 5}}",
    "stages: {}\nstagez: {}",
    "stages: {}\nname: 5",
    "stages: {}\nlimits: {requests: 0}",
    "stages: {}\nlogging: {level: loud}",
    "stages: {}\ntransport: {use: local, port: 1}",
    "stages: {}\ntransport: {use: wrap, inner: {use: broker, port: x}}",
    "stages: {}\nedges: [{from: x}]",
    "stages: {}\nkv: memory",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_loads_is_valid(load: Callable[..., Config], schema: dict[str, Any], folder: Path, text: str) -> None:
    load(HEAD + text)
    assert accepts(schema, HEAD + text, folder)


@pytest.mark.parametrize("text", WRONG)
def test_what_does_not_load_is_not_valid(
    faults: Callable[..., list[str]], schema: dict[str, Any], folder: Path, text: str
) -> None:
    assert faults(HEAD + text)
    assert not accepts(schema, HEAD + text, folder)


@pytest.mark.parametrize(
    "head", ["pipeline: flow\nstages: {}", "version: 2\npipeline: flow\nstages: {}", "version: 1\nstages: {}"]
)
def test_version_and_kind_are_required(schema: dict[str, Any], folder: Path, head: str) -> None:
    assert not accepts(schema, head, folder)


def test_each_kind_has_its_own_sections(schema: dict[str, Any], folder: Path) -> None:
    assert accepts(schema, "version: 1\npipeline: empty", folder)
    assert not accepts(schema, "version: 1\npipeline: empty\nstages: {}", folder)


@pytest.mark.parametrize(
    ("stage", "valid"),
    [
        ({"use": "tone", "wpm": "${env:WPM:-5}", "shape": "${env:S}", "title": "${env:T}", "loud": "a${env:L}"}, True),
        ({"use": "tone", "replicas": "${env:N}", "pause": "${env:N}", "gains": {"a": "${env:G}"}}, True),
        ({"use": "${env:STAGE:-tone}", "anything": 1}, True),
        ({"use": "tone", "wpm": "${WPM}"}, False),
        ({"use": "tone", "tags": "${env:TAGS}"}, False),
    ],
)
def test_a_reference_may_stand_for_any_scalar(schema: dict[str, Any], stage: dict[str, Any], valid: bool) -> None:
    data = {"version": 1, "pipeline": "flow", "stages": {"x": stage}, "limits": {"requests": "${env:R}"}}
    assert Draft202012Validator(schema).is_valid(data) is valid


def test_descriptions_and_defaults_are_there(schema: dict[str, Any]) -> None:
    flow = next(branch for branch in schema["oneOf"] if branch["title"] == "flow")
    assert flow["properties"]["pipeline"] == {"const": "flow", "description": "The flow."}
    tone = next(each for each in schema["$defs"]["FlowStage"]["oneOf"] if each["title"] == "tone")
    assert tone["properties"]["wpm"]["default"] == 20
    assert tone["properties"]["use"]["description"] == "The tone."
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


class Colour(Enum):
    RED = "red"


class Odd:
    """A type without a schema."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_arguments: Any) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(cls)


class Strange(Options):
    """Types that schemas find hard."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    size: ByteSize = ByteSize(1)
    odd: Odd | None = None
    colour: Colour = Colour.RED
    even: Annotated[int, AfterValidator(lambda value: value)] = 2
    key: SecretStr = SecretStr("hunter2")
    choice: Literal[1, "a"] = 1
    either: list[int] | dict[str, int] = Field(default_factory=list)


class Breaking(Options):
    """A model whose own schema code is at fault."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        raise RuntimeError("bug")


class Part(Options):
    stage: StageBlock


def test_strange_and_broken_models_leave_the_schema_usable(make_provider: Make) -> None:
    catalog = Catalog.of(
        pipelines=[make_provider("k", Part)], stages=[make_provider("odd", Strange), make_provider("bad", Breaking)]
    )
    schema = json_schema(catalog)
    validator = Draft202012Validator(schema)
    validator.check_schema(schema)
    assert "hunter2" not in json.dumps(schema)
    head = {"version": 1, "pipeline": "k"}
    assert validator.is_valid({**head, "stage": {"use": "odd", "colour": "red", "odd": 1, "choice": 1, "either": [1]}})
    assert validator.is_valid({**head, "stage": {"use": "bad", "whatever": 1}})
    assert not validator.is_valid({**head, "stage": {"use": "odd", "colour": "blue"}})


def test_models_of_the_same_name_are_kept_apart(make_provider: Make) -> None:
    def settings(field: str) -> type[Options]:
        return type("Settings", (Options,), {"__annotations__": {field: int}, "__module__": field})

    catalog = Catalog.of(
        pipelines=[make_provider("k", Part)],
        stages=[make_provider("a", settings("x")), make_provider("b", settings("y"))],
    )
    validator = Draft202012Validator(json_schema(catalog))
    head = {"version": 1, "pipeline": "k"}
    assert validator.is_valid({**head, "stage": {"use": "a", "x": 1}})
    assert not validator.is_valid({**head, "stage": {"use": "a", "y": 1}})


def test_no_plugin_at_all_is_a_schema_too() -> None:
    Draft202012Validator.check_schema(json_schema(Catalog.of()))
