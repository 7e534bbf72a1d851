"""A planted secret appears in no message, no traceback and no output."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, field_validator
from pydantic_core import PydanticCustomError

from stagewire import ConfigError, Options, Problem, Provider, StageBlock
from stagewire.config import Config, effective
from stagewire.config.redact import HIDDEN, masked, without_passwords
from stagewire.registry import Catalog

Make = Callable[..., Provider[Any]]
HEAD = "version: 1\npipeline: flow\nstages: {}\n"
SECRET = "hunter2's \u00e9 secret"

AT_FAULT = {
    "beside another fault": f'transport: {{use: broker, token: "{SECRET}", port: x}}',
    "too short for its validator": "transport: {use: broker, login: {password: abcd}}",
    "a number": "transport: {use: broker, token: 123456789}",
    "a list": f'transport: {{use: broker, token: ["{SECRET}"]}}',
    "in place of its section": f'transport: {{use: broker, login: "{SECRET}"}}',
    "in a message of its model": f'transport: {{use: broker, token: "{SECRET}", port: 1}}',
    "in a URL": 'transport: {use: broker, url: "amqp://me:hunter2@[bad"}',
    "in a URL where a map is due": 'transport: "amqp://me:hunter2@host/"',
    "under an unknown key": f'transport: {{use: broker, tokn: "{SECRET}"}}',
    "under a key written twice": f'transport: {{use: broker, token: "{SECRET}", token: "{SECRET}"}}',
    "from the environment": "transport: {use: broker, port: '${env:SECRET}'}",
    "beside a missing variable": 'transport: {use: broker, token: "${env:NONE} hunter2"}',
}


@pytest.mark.parametrize("case", AT_FAULT)
def test_a_secret_is_in_no_message_nor_traceback(load: Callable[..., Config], case: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(HEAD + AT_FAULT[case] + "\n", environ={"SECRET": SECRET})
    text = "".join(traceback.format_exception(caught.value)) + repr(caught.value.problems)
    assert not any(part in text for part in ("hunter2", 'secret"', "abcd", "123456789")), text


def test_what_a_secret_needs_is_told_without_it(faults: Callable[..., list[str]]) -> None:
    assert faults(HEAD + "transport: {use: broker, token: 123456, login: {password: abc}}\n") == [
        "a.yaml:4:33: transport.token: must be text, got a number",
        "a.yaml:4:59: transport.login.password: is not valid; the value is a secret, so the reason is not shown",
    ]


def test_a_secret_in_a_message_of_its_model_is_masked(faults: Callable[..., list[str]]) -> None:
    assert faults(HEAD + "transport: {use: broker, token: hunter2, port: 1}\n") == [
        f"a.yaml:4:12: transport: port 1 cannot take the token {HIDDEN}"
    ]


def test_a_short_secret_blanks_out_only_what_a_plugin_says(faults: Callable[..., list[str]]) -> None:
    assert faults(HEAD + "transport: {use: broker, token: a, port: x}\n") == [
        "a.yaml:4:42: transport.port: must be an integer, got 'x'"
    ]
    (found,) = faults(HEAD + "transport: {use: broker, token: z9, port: 1}\n")
    assert "z9" not in found


class Telling(Options):
    """Options whose validator and check give the secret away."""

    key: SecretStr

    @field_validator("key", mode="before")
    @classmethod
    def _key(cls, value: Any) -> Any:
        if value == "custom":
            raise PydanticCustomError("custom", "the value {value} is wrong", {"value": value})
        return value


class Part(Options):
    stage: StageBlock


@pytest.mark.parametrize("key", ["custom", "planted-key"])
def test_a_plugin_that_tells_a_secret_is_kept_from_it(
    faults: Callable[..., list[str]], make_provider: Make, key: str
) -> None:
    def tell(options: Telling, _catalog: Catalog) -> list[Problem]:
        return [Problem(f"{options.key.get_secret_value()!r} is weak", ("key",))]

    catalog = Catalog.of(
        pipelines=[make_provider("k", Part)],
        stages=[make_provider("s", Telling, check=tell)],
        transports=[make_provider("local")],
        kv_backends=[make_provider("memory")],
        lease_backends=[make_provider("memory")],
    )
    (found,) = faults(f"version: 1\npipeline: k\nstage: {{use: s, key: {key}}}\n", using=catalog)
    assert key not in found
    assert found.startswith("a.yaml:3:22: stage.key: ")


def test_a_secret_is_in_no_repr_and_no_effective_value(load: Callable[..., Config]) -> None:
    config = load(
        HEAD
        + "transport: {use: broker, token: hunter2, login: {password: '${env:PW}'}, url: 'amqp://me:hunter2@host/x'}\n",
        environ={"PW": "hunter2"},
    )
    shown = {value.path: value.text for value in effective(config)}
    assert "hunter2" not in repr(shown)
    assert shown[("transport", "token")] == shown[("transport", "login", "password")] == HIDDEN
    assert shown[("transport", "url")] == '"amqp://me:***@host/x"'
    for each in (config.transport, config.document):
        assert "hunter2" not in repr(each).replace("amqp://me:hunter2", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("amqp://user:pw@host/x", "amqp://user:***@host/x"),
        ("redis://:p@ss/w:rd@host", "redis://:***@host"),
        ("see a://b:c@d and e://f:g@h", "see a://b:***@d and e://f:***@h"),
        ("http://host:80/path", "http://host:80/path"),
        ("user@host", "user@host"),
    ],
)
def test_passwords_of_urls_are_hidden(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


@given(st.text(), st.text(min_size=1), st.text())
def test_masking_leaves_nothing_of_a_secret(before: str, secret: str, after: str) -> None:
    text = masked(f"{before}{secret}{after} {secret!r}", {secret})
    assert secret not in text.replace(HIDDEN, "\0")
