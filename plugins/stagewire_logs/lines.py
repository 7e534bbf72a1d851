"""One line of a log, as the analyses see it, whichever logger wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

LEVELS = ("debug", "info", "warning", "error", "critical")
"""The levels, quiet to loud."""

RANK: Mapping[str, int] = {level: rank for rank, level in enumerate(LEVELS)}
"""Each level's place in `LEVELS`."""

LOUD = frozenset({"warning", "error", "critical"})
"""The levels that reports group by cause."""

ERRORS = frozenset({"error", "critical"})
"""The levels that mean that something failed."""

STAMP = len("2026-12-01T02:06:09.123456Z")
"""Characters of a timestamp in its one form: UTC, microseconds, ``Z``. Such timestamps sort as texts do."""

Detail = dict[str, Any]
"""A line with all its fields."""


class Line(Struct, gc=False):
    """What every analysis may ask of a line without decoding the rest of it.

    Attributes:
        timestamp: UTC in its one form (`STAMP`), or empty when the line has no time that can be read.
        level: One of `LEVELS`.
        event: The event or, of another logger, the message.
    """

    timestamp: str
    level: str
    event: str
    pipeline: str = ""
    request_id: str | None = None
    session_id: str | None = None
    stage: str | None = None
    edge: str | None = None
    seconds: float | None = None
    cause: str | None = None
    chunks: int | None = None
    outputs: int | None = None
    stages: dict[str, float] | None = None
