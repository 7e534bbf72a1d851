"""Finds the secrets of a configuration, so that its log can hide them wherever they turn up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr

from stagewire.config import Config, UseBlock


def secrets_of(config: Config) -> frozenset[str]:
    """Return the text of every `pydantic.SecretStr` in the configuration, those of its providers' options included."""
    parts = (config.options, config.transport, config.kv, config.lease)
    return frozenset(secret.get_secret_value() for part in parts for secret in _secrets(part))


def _secrets(value: Any) -> Iterator[SecretStr]:
    if isinstance(value, SecretStr):
        yield value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _secrets(getattr(value, name))
        if isinstance(value, UseBlock):
            yield from _secrets(value.options)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _secrets(item)
