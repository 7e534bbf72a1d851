"""One line for a person, coloured where that is wanted. Cheap: ``tail`` prints before anything large is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

COLOURS = {"debug": "bright_black", "info": "green", "warning": "yellow", "error": "red", "critical": "bright_red"}

FIRST = ("request_id", "session_id", "stage", "edge")
"""Ids that stand before the other fields, without their names."""

_HIDDEN = frozenset(
    {"timestamp", "@timestamp", "time", "ts", "asctime", "level", "levelname", "severity", "event", "msg", "message"}
    | {"pipeline", *FIRST}
)
"""Fields that are shown in another form, also those of other loggers."""
WIDTH = 200
"""Characters of one value."""


def brief(fields: Mapping[str, Any]) -> str:
    """Return fields as ``name=value``, each in one bounded line."""
    return " ".join(f"{name}={value_of(value)}" for name, value in fields.items() if name not in _HIDDEN)


def value_of(value: Any) -> str:
    """Return a value on one line without control characters, shortened."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and value and isinstance(value[0], dict) and "exc_type" in value[0]:
        value = f"{value[0]['exc_type']}: {value[0].get('exc_value', '')}"
    text = value if isinstance(value, str) else str(value)
    text = "".join(char if char.isprintable() else " " for char in text[: WIDTH + 1])
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"


def pretty(stamp: str, level: str, event: str, detail: Mapping[str, Any], *, colour: bool) -> str:
    """Return a line: time of day, level, event, ids, fields."""
    ids = " ".join(value_of(detail[name]) for name in FIRST if detail.get(name) not in {None, ""})
    parts = [
        stamp[11:23] or "??:??:??.???",
        _styled(f"{level:<8}", COLOURS[level], colour=colour),
        _styled(value_of(event), "cyan", colour=colour),
        value_of(detail.get("pipeline", "")),
        ids,
        brief(detail),
    ]
    return " ".join(part for part in parts if part)


def _styled(text: str, style: str, *, colour: bool) -> str:
    return click.style(text, fg=style) if colour else text
