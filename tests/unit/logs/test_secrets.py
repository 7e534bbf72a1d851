"""Secrets are planted everywhere, and the log is searched for them."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest
from pydantic import BaseModel, SecretBytes, SecretStr

from stagewire.logs import MASK, Redactor, is_secret_key

SECRET = "hunter2-Zx9"


class Options(BaseModel):
    url: str = f"amqp://user:{SECRET}@rabbit:5672/vhost"
    password: SecretStr = SecretStr(SECRET)
    api_key: str = SECRET


@dataclasses.dataclass
class Session:
    secret: str = SECRET


def fail_with_a_secret() -> None:
    password = SECRET
    local_mapping = {"password": password}
    raise ConnectionError(f"cannot reach redis://:{SECRET}@cache/0 with password={SECRET} ({len(local_mapping)})")


@pytest.mark.parametrize("format_", ["json", "console"])
def test_no_planted_secret_is_ever_written(make_book: Any, format_: str) -> None:
    book = make_book(format=format_)
    log = book.log.bind(authorization=f"Bearer {SECRET}", broker=f"amqp://user:{SECRET}@rabbit/")
    log.info("url", url=f"redis://:{SECRET}@cache:6379/0")
    event = f"in the event itself amqp://user:{SECRET}@rabbit/"
    log.info(event)
    log.info("model", options=Options(), nested={"a": [{"b": Options()}]})
    log.info("nested", a={"b": [{"c": {"access_token": SECRET, "X-Auth-Token": SECRET, "secretAccessKey": SECRET}}]})
    log.info("wrapped", one=SecretStr(SECRET), many=[SecretBytes(SECRET.encode())], session=Session())
    log.info("headers", headers=[("Authorization", f"Basic {SECRET}"), ("Accept", "*/*")])
    log.info("payload", data=SECRET.encode(), buffer=memoryview(SECRET.encode()))
    log.info("text", line=f'{{"password": "{SECRET}"}}', query=f"https://s3/x?X-Amz-Signature={SECRET}&a=1")
    log.info("error", error=ValueError(f"token={SECRET}"))
    log.info("key", fields={f"amqp://u:{SECRET}@h": 1})
    try:
        fail_with_a_secret()
    except ConnectionError as error:
        error.add_note(f"password: {SECRET}")
        log.exception("app.failed")
        log.exception("app.failed", exc_info=ExceptionGroup(f"password={SECRET}", [error]))
    assert SECRET not in book.text
    assert "app.failed" in book.text
    assert "fail_with_a_secret" in book.text, "the trace is there, its local variables are not"


def test_a_known_secret_is_hidden_wherever_it_occurs(make_book: Any) -> None:
    secret = 'pä"ss/w\\rd'
    book = make_book(secrets=[secret])
    book.log.info(
        "app.started", why=f"login {secret} refused", data={"raw": [repr(secret)]}, quoted="p%C3%A4%22ss%2Fw%5Crd"
    )
    assert "ss/w" not in book.text
    assert "ss%2Fw" not in book.text
    assert book.last["why"] == f"login {MASK} refused"


def test_a_known_secret_that_is_too_short_to_tell_from_words_is_left() -> None:
    assert Redactor(["a"])("banana") == "banana"
    assert Redactor([SecretStr("abcd")])("abcde") == f"{MASK}e"


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "PASSWORD",
        "db_password",
        "token",
        "access_token",
        "X-Auth-Token",
        "apiKey",
        "api_key",
        "secret",
        "client_secret",
        "secretAccessKey",
        "aws.secret.key",
        "Authorization",
        "cookie",
        "X-Amz-Signature",
        "credentials",
    ],
)
def test_a_secret_key_is_known(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key", ["tokens", "max_tokens", "token_count", "key", "chunk_id", "cause", "author", "compass"]
)
def test_an_ordinary_key_is_not(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("amqp://user:p@ss/w:rd@host:5672/v", "amqp://user:***@host:5672/v"),
        ("redis://:pw@host", "redis://:***@host"),
        ("amqp://user@host/v", "amqp://user@host/v"),
        ("http://host:8080/users/me@example.com", "http://host:8080/users/me@example.com"),
        ("http://host:8080 and me@example.com", "http://host:8080 and me@example.com"),
        ("password=ab,cd;e next", "password=*** next"),
        ("{'password': 'a b', 'x': 1}", "{'password': ***, 'x': 1}"),
        (r'{"secret":"a\"b","x":1}', '{"secret":***,"x":1}'),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("sent bearer abcdef0123456789 twice", "sent bearer *** twice"),
        ("?token=abc&x=1", "?token=***&x=1"),
        ("x-auth-token: abc", "x-auth-token: ***"),
        ("unexpected token: }", "unexpected token: }"),
        ("basic connectivity, bearer of news", "basic connectivity, bearer of news"),
        ("10 tokens: 4 in, 6 out", "10 tokens: 4 in, 6 out"),
    ],
)
def test_a_text_keeps_what_is_no_secret(text: str, shown: str) -> None:
    assert Redactor()(text) == shown


def test_redacting_twice_changes_nothing() -> None:
    once = Redactor()(f"amqp://u:{SECRET}@h password={SECRET} Authorization: Bearer {SECRET}")
    assert Redactor()(once) == once


@pytest.mark.parametrize("seed", ["a", "://", "token", "password", "bearer ", '"', "a:b@", "://a:", "password='"])
def test_a_hostile_text_is_redacted_in_reasonable_time(seed: str) -> None:
    text = (seed * 8000)[:8000]
    begun = time.process_time()
    Redactor()(text)
    assert time.process_time() - begun < 1, "a search that is quadratic in a repetition takes minutes"
