"""Did-you-mean hints, bounded so that hostile names cost nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 100
_MOST_CHOICES = 1_000


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the choice closest to ``name``, or ``""`` when none is close.

    The hint is made to be appended to a message. Case does not count. Names longer than 100 characters get no hint.
    """
    if not name or len(name) > _LONGEST:
        return ""
    spellings = {choice.casefold(): choice for choice in _comparable(choices)}
    close = difflib.get_close_matches(name.casefold(), spellings, n=1)
    return f"; did you mean {spellings[close[0]]!r}?" if close else ""


def _comparable(choices: Iterable[str]) -> list[str]:
    return [choice for choice in list(choices)[:_MOST_CHOICES] if len(choice) <= _LONGEST]
