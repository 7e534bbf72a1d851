"""What must never be read in a log: passwords in URLs, tokens, keys, and whatever the configuration calls a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from pydantic import SecretStr

MASK = "***"
"""Stands where a secret stood."""

SHORTEST_SECRET = 4
"""A known secret of fewer characters is not looked for in texts: it would blank out ordinary words."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_WORDS = frozenset(
    {
        "apikey",
        "authorization",
        "cookie",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "pwd",
        "secret",
        "secrets",
    }
)
_SECRET_ENDINGS = ("token", "api_key", "access_key", "private_key", "secret_key", "signature")

# None of these begins with a repetition, so that a long text is searched in linear time.
#
# From the colon after the user to the last @ of the word, so that a password with an @ or a / is hidden whole. Digits
# up to a / are a port, and that URL has no password.
_URL_PASSWORD = re.compile(r"(://[^\s:/@]*:)(?!\d{1,5}(?:[/?#\s]|$))\S*@")
_NAME = r"password|passwd|passphrase|secret|authorization|credential|signature|(?:api|access|private)[_-]?key"
_TOKEN = r"token[\"']?\s*=|token[\"']\s*:|[_-]token\s*:"  # noqa: S105 — not "unexpected token: }"
_VALUE = r"(?:(?:bearer|basic|digest)\s+)?(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s&]+)"
_ASSIGNED = re.compile(rf"((?:(?:{_NAME})[\"']?\s*[:=]|{_TOKEN})\s*){_VALUE}", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer\s+)(?=\S*\d)[\w+/.~\-]{8,}=*", re.IGNORECASE)


@lru_cache(maxsize=1024)
def is_secret_key(key: str) -> bool:
    """Return whether a value under this key is a secret: ``password``, ``X-Auth-Token``, ``secretAccessKey`` …

    ``tokens`` and ``max_token_count`` are not: those count what a model reads.
    """
    words = _CAMEL.sub("_", key).lower().replace("-", "_").replace(".", "_")
    return words.endswith(_SECRET_ENDINGS) or not _SECRET_WORDS.isdisjoint(words.split("_"))


class Redactor:
    """Hides secrets in texts.

    Args:
        secrets: Values known to be secret, hidden wherever they occur.
    """

    def __init__(self, secrets: Iterable[str | SecretStr] = ()) -> None:
        plain = [each.get_secret_value() if isinstance(each, SecretStr) else each for each in secrets]
        spellings = {way for each in plain if len(each) >= SHORTEST_SECRET for way in _spellings(each)}
        self._known = sorted(spellings, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return ``text`` with every secret replaced by ``MASK``."""
        for secret in self._known:
            text = text.replace(secret, MASK)
        # Most texts are ids and words, in which there is nothing to search for.
        if "@" in text and "://" in text:
            text = _URL_PASSWORD.sub(rf"\1{MASK}@", text)
        if ":" in text or "=" in text:
            text = _ASSIGNED.sub(rf"\1{MASK}", text)
        return _BEARER.sub(rf"\1{MASK}", text) if " " in text else text


def _spellings(secret: str) -> tuple[str, ...]:
    """The secret as it is, and as Python, JSON and a URL write it."""
    return secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, safe="")
