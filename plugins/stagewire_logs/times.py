"""Timestamps: any usual form in, one form out, and seconds since the epoch where they are needed."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from stagewire_logs.lines import STAMP

_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (float("inf"), 1e9))
"""Below which value a number counts as s, ms, us, ns; seconds reach the year 5138."""

_RELATIVE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def stamp_of(value: object) -> str:
    """Return a time in its one form: from a number (s, ms, us or ns since the epoch, told by its size) or an ISO text.

    A text without a zone is taken as UTC. Returns an empty text for what is no time.
    """
    try:
        if isinstance(value, bool):
            return ""
        if isinstance(value, int | float):
            return from_epoch(_scaled(float(value)))
        if isinstance(value, str):
            return _from_text(value.strip())
    except (ValueError, OverflowError, OSError):
        return ""
    return ""


def _from_text(text: str) -> str:
    if text.replace(".", "", 1).isdigit() and len(text) > len("20261201"):
        return from_epoch(_scaled(float(text)))
    when = datetime.fromisoformat(text)
    return _format(when.astimezone(UTC) if when.tzinfo else when)


def _scaled(number: float) -> float:
    return next((number / scale for below, scale in _UNITS if abs(number) < below), math.nan)


def from_epoch(seconds: float) -> str:
    """Return the time that is so many seconds after 1970. Raises `ValueError` or `OverflowError` outside of years."""
    return _format(datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds))


def _format(when: datetime) -> str:
    return when.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@lru_cache(maxsize=4096)
def _minute(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def epoch(stamp: str) -> float:
    """Return a timestamp (`STAMP`) as seconds since 1970. Raises `ValueError` when it is none."""
    return _minute(stamp[:16]) + float(stamp[17:26])


def is_stamp(text: str) -> bool:
    """Whether a text is a timestamp in its one form."""
    if len(text) != STAMP or text[-1] != "Z" or text[10] != "T":
        return False
    try:
        epoch(text)
    except ValueError:
        return False
    return True


def moment(text: str, now: datetime) -> str:
    """Return the timestamp of a time that a person gave: ISO, epoch, or ``15m`` for so long before ``now``.

    Raises:
        ValueError: It is none of these; the text says what is accepted.
    """
    relative = _RELATIVE.fullmatch(text.strip())
    if relative:
        return _format(now - timedelta(seconds=float(relative[1]) * _SECONDS[relative[2]]))
    found = stamp_of(text)
    if not found:
        raise ValueError(
            f"{text!r} is no time: give ISO 8601 (2026-12-01T12:03), seconds since 1970, or 90s, 15m, 2h, 1d"
        )
    return found
