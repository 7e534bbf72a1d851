"""Keeps secrets out of what people see."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "**********"
"""What stands for a secret, as pydantic writes it."""

_SHORTEST = 4

_URL_PASSWORD = re.compile(r"(://[^\s:/@]*:)\S+@")


def without_passwords(text: str) -> str:
    """Return ``text`` with the password of every URL hidden."""
    return _URL_PASSWORD.sub(r"\1***@", text) if "://" in text else text


def maskable(value: object) -> set[str]:
    """Return the texts to hide for a value: itself, unless it is so short that it would blank out ordinary words."""
    return {value} if isinstance(value, str) and len(value) >= _SHORTEST else set()


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return ``text`` with every secret hidden, also where it is written as a Python literal, and URL passwords too."""
    for secret in sorted(secrets, key=len, reverse=True):
        for spelling in (secret, repr(secret)[1:-1]):
            text = text.replace(spelling, HIDDEN)
    return without_passwords(text)
