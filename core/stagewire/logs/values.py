"""Turns any value into something bounded, redacted and JSON-able, and never raises."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any

import msgspec
from pydantic import BaseModel, SecretBytes, SecretStr

from stagewire.errors import bounded, describe
from stagewire.logs.redaction import MASK, Redactor, is_secret_key

MAX_TEXT = 2_000
"""Characters of one text."""

MAX_KEY = 200
"""Characters of one key."""

MAX_ITEMS = 50
"""Items of one collection."""

MAX_DEPTH = 10
"""Collections within collections."""

MAX_VALUES = 2_000
"""Values in one event, all collections together."""

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_LEFT_OUT = "…"


class Cleaner:
    """Makes events safe to write: bounded, without secrets, without the content of bytes.

    Args:
        redact: Hides secrets in texts.
        printable: Whether control characters are escaped, as a terminal needs it.
    """

    def __init__(self, redact: Redactor, *, printable: bool) -> None:
        self._redact = redact
        self._printable = printable

    def clean(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of one event, each rendered within the bounds."""
        walk = _Walk(self.text)
        return {self.text(key, MAX_KEY): walk.field(key, value) for key, value in fields.items()}

    def text(self, text: str, limit: int = MAX_TEXT) -> str:
        """Return a text redacted, bounded and encodable."""
        # Redacting a text of megabytes would hold up the work; what is past this cut is not shown anyway.
        text = bounded(self._redact(bounded(text, 4 * limit)), limit)
        if self._printable:
            text = text.translate(_CONTROLS)
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


class _Walk:
    """Renders the values of one event, which share one budget."""

    def __init__(self, text: Callable[..., str]) -> None:
        self._text = text
        self._left = MAX_VALUES

    def field(self, key: str, value: object, depth: int = 0) -> Any:
        if is_secret_key(key) and value is not None:
            return MASK
        try:
            return self._value(value, depth)
        except Exception as error:  # noqa: BLE001 — a value that cannot be looked at must not break the work
            return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"

    def _value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            return _LEFT_OUT
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(str(value))
        if isinstance(value, numbers.Real):
            return _number(value)
        if isinstance(value, SecretStr | SecretBytes):
            return MASK
        size = _buffer_size(value)
        return self._collection(value, depth + 1) if size is None else f"<{type(value).__name__} of {size} bytes>"

    def _collection(self, value: Any, depth: int) -> Any:
        fields = _fields(value)
        if fields is None and not isinstance(value, Sequence | AbstractSet):
            return self._text(describe(value) if isinstance(value, BaseException) else str(value))
        if depth > MAX_DEPTH:
            return _LEFT_OUT
        return self._sequence(value, depth) if fields is None else self._mapping(fields, depth)

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        shown = {self._key(key): self.field(str(key), each, depth) for key, each in islice(value.items(), MAX_ITEMS)}
        if len(value) > MAX_ITEMS:
            shown[_LEFT_OUT] = f"{len(value) - MAX_ITEMS} more"
        return shown

    def _sequence(self, value: Sequence[Any] | AbstractSet[Any], depth: int) -> list[Any]:
        shown = [self._item(each, depth) for each in islice(value, MAX_ITEMS)]
        if len(value) > MAX_ITEMS:
            shown.append(f"{_LEFT_OUT} {len(value) - MAX_ITEMS} more")
        return shown

    def _item(self, value: object, depth: int) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):  # noqa: PLR2004 — a pair
            return [self._text(value[0]), self.field(value[0], value[1], depth)]  # as headers come
        return self.field("", value, depth)

    def _key(self, key: object) -> str:
        return self._text(key if isinstance(key, str) else str(self.field("", key, MAX_DEPTH)), MAX_KEY)


def _fields(value: Any) -> Mapping[Any, Any] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _number(value: numbers.Real) -> int | float | str:
    if isinstance(value, numbers.Integral):
        whole = int(value)
        return whole if -(2**63) <= whole < 2**64 else f"<int of {whole.bit_length()} bits>"
    real = float(value)
    return real if math.isfinite(real) else str(real)


def _buffer_size(value: Any) -> int | None:
    """How many bytes an array or a bytes-like object has; ``None`` for everything else, numpy's scalars included."""
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        return None
    return view.nbytes if view.ndim else None
