"""Pydantic's findings in the words of a person who writes YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

from stagewire.config.redact import without_passwords
from stagewire.errors import bounded
from stagewire.suggest import did_you_mean

_MOST_NAMES = 12

_PHRASES: Mapping[str, str] = {
    "bool_parsing": "be true or false",
    "bool_type": "be true or false",
    "byte_size": "be a size, such as 64MiB",
    "byte_size_unit": "be a size, such as 64MiB",
    "date_parsing": "be a date, such as 2024-12-31",
    "date_type": "be a date, such as 2024-12-31",
    "dict_type": "be a map",
    "enum": "be {expected}",
    "finite_number": "be a finite number",
    "float_parsing": "be a number",
    "float_type": "be a number",
    "frozen_set_type": "be a list",
    "greater_than": "be greater than {gt}",
    "greater_than_equal": "be at least {ge}",
    "int_from_float": "be an integer",
    "int_parsing": "be an integer",
    "int_parsing_size": "be an integer of sensible size",
    "int_type": "be an integer",
    "less_than": "be less than {lt}",
    "less_than_equal": "be at most {le}",
    "list_type": "be a list",
    "literal_error": "be {expected}",
    "mapping_type": "be a map",
    "model_attributes_type": "be a map",
    "model_type": "be a map",
    "multiple_of": "be a multiple of {multiple_of}",
    "none_required": "be null",
    "path_type": "be a path",
    "set_type": "be a list",
    "string_pattern_mismatch": "match the pattern {pattern!r}",
    "string_too_long": "have at most {max_length} characters",
    "string_too_short": "have at least {min_length} characters",
    "string_type": "be text",
    "time_delta_parsing": "be a duration, in seconds or such as 00:01:30",
    "time_delta_type": "be a duration, in seconds or such as 00:01:30",
    "too_long": "have at most {max_length} items",
    "too_short": "have at least {min_length} items",
    "tuple_type": "be a list",
    "union_tag_invalid": "have {expected_tags} as {discriminator}",
    "union_tag_not_found": "have the key {discriminator}",
    "url_parsing": "be a URL ({error})",
    "url_scheme": "be a URL that begins with {expected_schemes}",
    "url_type": "be a URL",
}
"""What follows "must"; the braces are filled from the error's context."""

_KNOWN = frozenset(get_args(ErrorType)) | frozenset(_PHRASES)
_OWN_WORDS = ("value_error", "assertion_error")
_CHOICE = re.compile(r"'((?:[^'\\]|\\.)*)'")


def phrase(error: ErrorDetails) -> str:
    """Return what the value must be or have, to follow "must"."""
    kind, context = error["type"], error.get("ctx", {})
    template = _PHRASES.get(kind)
    if template is None:
        return _fallback(error["msg"])
    whole = {name: int(value) if _is_whole(value) else value for name, value in context.items()}
    text = bounded(template.format_map(whole), 300)
    return re.sub(r"\b1 (character|item)s", r"1 \1", text)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _fallback(message: str) -> str:
    """Pydantic's own words, made to follow "must"."""
    what = re.match(r"\w+ should (.*)", message, re.DOTALL)
    return bounded(what[1] if what else f"be valid ({message[:1].lower()}{message[1:]})", 300)


def is_worded(error: ErrorDetails) -> bool:
    """Return whether `phrase` has words for the error that cannot hold the value at fault."""
    return error["type"] in _PHRASES


def own_words(error: ErrorDetails) -> str | None:
    """Return the message that a validator of the model raised, if the error is one."""
    if error["type"] in _KNOWN and error["type"] not in _OWN_WORDS:
        return None
    return re.sub(r"^(Value|Assertion) error(, |$)", "", error["msg"]) or "is not valid"


def requirement(errors: Iterable[ErrorDetails], got: str) -> str:
    """Join what would do, and what there is: ``must be an integer or 'auto', got 'x'``."""
    first, *others = dict.fromkeys(phrase(error) for error in errors)
    if first.startswith("be "):
        others = [other.removeprefix("be ") for other in others]
    return f"must {' or '.join([first, *others])}, got {got}"


def hint(errors: Iterable[ErrorDetails], value: Any) -> str:
    """Return the remedy that the value itself suggests, or nothing."""
    errors = list(errors)
    choices = [choice for error in errors for choice in _expected(error)]
    if isinstance(value, str) and choices:
        return did_you_mean(value, choices)
    wants_text = any(error["type"] == "string_type" for error in errors)
    if wants_text and isinstance(value, bool | int | float):
        return "; put it in quotes"
    return ""


def unknown_key(name: str, known: Sequence[str]) -> str:
    """Return the message for a key that no model knows."""
    if close := did_you_mean(name, known):
        return f"unknown key{close}"
    return f"unknown key; known here: {listing(known)}" if known else "unknown key; no key is known here"


def listing(names: Iterable[str]) -> str:
    """Return the names in quotes, at most a dozen of them."""
    unique = sorted(dict.fromkeys(names))
    shown = ", ".join(repr(bounded(name, 60)) for name in unique[:_MOST_NAMES])
    return shown + (f" and {len(unique) - _MOST_NAMES} more" if len(unique) > _MOST_NAMES else "")


def shown(value: Any) -> str:
    """Return a value as a message shows it: collections by their kind, texts bounded and without passwords."""
    if value is None or isinstance(value, bool | dict | list):
        return kind_of(value)
    if isinstance(value, str):
        return repr(bounded(without_passwords(value[:2_000]), 60))
    return bounded(str(value), 60) if isinstance(value, int | float) else kind_of(value)


_KINDS = {dict: "a map", list: "a list", str: "text", int: "a number", float: "a number"}


def kind_of(value: Any) -> str:
    """Return what kind of value it is, for a message that must not show the value itself."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return next((word for kind, word in _KINDS.items() if isinstance(value, kind)), "a value of another kind")


def _expected(error: ErrorDetails) -> list[str]:
    context = error.get("ctx", {})
    return _CHOICE.findall(str(context.get("expected", ""))) if error["type"] in ("literal_error", "enum") else []
