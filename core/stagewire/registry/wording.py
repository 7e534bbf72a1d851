"""Lists of names that stay readable."""

from __future__ import annotations

from collections.abc import Sequence

MAX_LISTED = 12
"""The most names that a message lists."""


def listed(names: Sequence[str]) -> str:
    """Return the names separated by commas, at most ``MAX_LISTED``, saying how many more there are."""
    shown = ", ".join(names[:MAX_LISTED])
    left = len(names) - MAX_LISTED
    return f"{shown} and {left} more" if left > 0 else shown
