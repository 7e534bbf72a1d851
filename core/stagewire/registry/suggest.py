"""Did-you-mean, and lists of names that stay readable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MAX_LISTED = 20
"""The most names that a message lists."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the closest known name, or an empty text when none is close."""
    close = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def listed(names: Sequence[str]) -> str:
    """Return the names separated by commas, at most ``MAX_LISTED``, saying how many more there are."""
    shown = ", ".join(names[:MAX_LISTED])
    left = len(names) - MAX_LISTED
    return f"{shown} and {left} more" if left > 0 else shown
