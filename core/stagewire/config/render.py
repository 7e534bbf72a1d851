"""What a configuration comes to: every value with where it was said, for ``stagewire config show``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from stagewire.config.document import Document
from stagewire.config.loader import Config
from stagewire.config.models import UseBlock
from stagewire.config.redact import HIDDEN, without_passwords
from stagewire.config.scalars import resolve
from stagewire.config.shape import field_places
from stagewire.config.tree import Where
from stagewire.errors import Location

_PLAIN = re.compile(r"[^\W\d_][^\x00-\x1f\x7f:#{}\[\],&*!|>'\"%@`]*(?<! )")
"""Texts that need no quotes in YAML; a cautious choice, as for readers of older YAML (see ``_OLD_TRUTHS``)."""

_OLD_TRUTHS = frozenset({"y", "n", "yes", "no", "on", "off"})


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """One value that the configuration comes to.

    Attributes:
        path: Its path.
        text: The value as YAML would have it; secrets are hidden.
        location: Where the files say so, ``None`` for a default.
        source: ``file``, ``default``, or ``env:NAME`` when it took the value of an environment variable.
    """

    path: Where
    text: str
    location: Location | None
    source: str


def effective(config: Config) -> list[EffectiveValue]:
    """Return every value of the configuration, defaults included, in the order of the models.

    A `pydantic.SecretStr` and the password of a URL are hidden. Empty maps and lists stand for themselves.
    """
    return [_effective(path, value, config.document) for path, value in _values(config)]


def _values(config: Config) -> Iterator[tuple[Where, Any]]:
    known = config.document.origins
    yield ("version",), 1
    yield ("pipeline",), config.kind.name
    yield ("name",), config.name
    yield from _leaves(config.options, (), known)
    for name in ("transport", "kv", "lease", "logging"):
        yield from _leaves(getattr(config, name), (name,), known)


def _leaves(value: Any, at: Where, known: Mapping[Where, Location]) -> Iterator[tuple[Where, Any]]:
    if isinstance(value, BaseModel):
        for path, item in field_places(value, at, known):
            yield from _leaves(item, path, known)
        if isinstance(value, UseBlock):
            yield from _leaves(value.options, at, known)
        return
    items = list(_items(value))
    for part, item in items:
        yield from _leaves(item, (*at, part), known)
    if not items:
        yield at, value


def _items(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, list | tuple | AbstractSet):
        yield from enumerate(value)


def _effective(path: Where, value: Any, document: Document) -> EffectiveValue:
    known = document.prefix(path)
    said = known == path or not isinstance(document.value(known), dict)  # a model may have made much of one scalar
    variables = document.env.get(known, ())
    source = f"env:{','.join(variables)}" if variables else "file"
    if not said:
        return EffectiveValue(path, _text(value), None, "default")
    return EffectiveValue(path, _text(value), document.origins[known], source)


def _text(value: Any) -> str:
    if hasattr(value, "get_secret_value"):
        return HIDDEN
    plain = to_jsonable_python(value, fallback=str)
    if isinstance(plain, str):
        text = without_passwords(plain)
        return text if _needs_no_quotes(text) else json.dumps(text, ensure_ascii=False)
    return json.dumps(plain, ensure_ascii=False, default=str)


def _needs_no_quotes(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and isinstance(resolve(text), str) and text.lower() not in _OLD_TRUTHS
