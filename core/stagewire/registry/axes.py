"""The axes on which plugins offer providers, and how a person calls them."""

from __future__ import annotations

from typing import get_args

from stagewire.spec.provider import Axis

AXES: tuple[Axis, ...] = get_args(Axis)
"""Every axis, in the order in which plugins are asked."""

_NOUNS: dict[Axis, str] = {
    "stages": "stage",
    "transports": "transport",
    "kv_backends": "KV backend",
    "lease_backends": "lease backend",
    "pipelines": "pipeline kind",
}


def noun(axis: Axis) -> str:
    """Return what one thing on this axis is called in a message."""
    return _NOUNS[axis]
