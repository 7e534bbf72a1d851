"""What the models allow at a path: the valid keys there, and whether a secret may stand there.

Pydantic's errors name neither, so the annotations are followed beside the data. A union is followed into all of its
members at once.
"""

from __future__ import annotations

import types
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel, Secret, SecretBytes, SecretStr

from stagewire.config.tree import LIMITS, Where

_SECRETS = (SecretStr, SecretBytes, Secret)


def field_keys(model: type[BaseModel], name: str) -> tuple[str, ...]:
    """Return the keys under which a file may give a field; the first is its usual name."""
    field = model.model_fields[name]
    aliases = tuple(_aliases(field.validation_alias or field.alias))
    by_name = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    return (*aliases, name) if by_name or not aliases else aliases


def field_places(model: BaseModel, at: Where, taken: Container[Where]) -> Iterator[tuple[Where, Any]]:
    """Return each field's value with its path: the one that is in ``taken``, or else its usual one."""
    for name in type(model).model_fields:
        paths = [(*at, key) for key in field_keys(type(model), name)]
        yield next((path for path in paths if path in taken), paths[0]), getattr(model, name)


def _aliases(alias: str | AliasPath | AliasChoices | None) -> Iterator[str]:
    if isinstance(alias, str):
        yield alias
    elif isinstance(alias, AliasChoices):
        yield from (choice for choice in alias.choices if isinstance(choice, str))


def model_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys that a file may use for a model's own fields."""
    return [key for name in model.model_fields for key in field_keys(model, name)]


def keys_at(annotation: Any, path: Where) -> list[str]:
    """Return the keys of every model that may stand at ``path`` below ``annotation``."""
    return [key for found in follow(annotation, path) for model in _models(found) for key in model_keys(model)]


def follow(annotation: Any, path: Where) -> list[Any]:
    """Return every annotation that the value at ``path`` may have."""
    found = [annotation]
    for part in path:
        found = [inner for outer in found for inner in _inside(outer, part)]
    return found


def is_secret(annotation: Any, path: Where) -> bool:
    """Return whether the value at ``path`` may be a secret or lie in one."""
    above = [follow(annotation, path[:length]) for length in range(len(path) + 1)]
    return any(_is_secret(option) for found in above for each in found for option in _options(each))


def holds_secret(annotation: Any, path: Where) -> bool:
    """Return whether what belongs at ``path`` may hold a secret, so that what stands there instead may be one."""
    return any(_mentions_secret(each, LIMITS.depth, set()) for each in follow(annotation, path))


def secrets_in(annotation: Any, value: Any) -> set[str]:
    """Return the secret texts of ``value``, so that they can be kept out of messages."""
    if isinstance(value, str):
        return {value} - {""} if any(_is_secret(option) for option in _options(annotation)) else set()
    found: set[str] = set()
    for part, item in _items(value):
        for inner in _inside(annotation, part):
            found |= secrets_in(inner, item)
    return found


def _items(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _models(annotation: Any) -> list[type[BaseModel]]:
    return [option for option in _options(annotation) if isinstance(option, type) and issubclass(option, BaseModel)]


def _options(annotation: Any) -> list[Any]:
    """The members of a union, through ``Annotated`` and type aliases."""
    annotation = getattr(annotation, "__value__", annotation)  # of a type alias
    origin = get_origin(annotation)
    if origin is Annotated:
        return _options(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [option for member in get_args(annotation) for option in _options(member)]
    return [annotation]


def _inside(annotation: Any, part: str | int) -> list[Any]:
    return [inner for option in _options(annotation) for inner in _step(option, part)]


def _step(option: Any, part: str | int) -> list[Any]:
    if isinstance(option, type) and issubclass(option, BaseModel):
        return [field.annotation for name, field in option.model_fields.items() if part in field_keys(option, name)]
    origin, arguments = get_origin(option), get_args(option)
    if not isinstance(origin, type) or not arguments:
        return []
    if issubclass(origin, Mapping):
        return [arguments[1]]
    if issubclass(origin, Sequence | AbstractSet):
        return [argument for argument in arguments if argument is not Ellipsis]
    return []


def _is_secret(option: Any) -> bool:
    return isinstance(get_origin(option) or option, type) and issubclass(get_origin(option) or option, _SECRETS)


def _mentions_secret(annotation: Any, depth: int, seen: set[Any]) -> bool:
    return depth > 0 and any(_option_mentions_secret(option, depth, seen) for option in _options(annotation))


def _option_mentions_secret(option: Any, depth: int, seen: set[Any]) -> bool:
    if _is_secret(option):
        return True
    if isinstance(option, type) and issubclass(option, BaseModel):
        if option in seen:
            return False
        seen.add(option)
        inner = [field.annotation for field in option.model_fields.values()]
    else:
        inner = list(get_args(option)) if get_origin(option) else []
    return any(_mentions_secret(each, depth - 1, seen) for each in inner)
