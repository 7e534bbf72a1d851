"""``${env:NAME}`` and ``${env:NAME:-default}`` inside texts; ``$${`` is a plain ``${``.

What comes from the environment stays text: it is never read as YAML. As in a shell, the default also stands in for
an empty variable; it reaches to the first ``}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stagewire.errors import bounded
from stagewire.suggest import did_you_mean

REFERENCE_PATTERN = r"\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"
"""A reference, as JSON Schema is told of it."""

_REFERENCE = re.compile(
    r"(?P<escape>\$\$\{)|\$\{env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|(?P<bad>\$\{[^}]*\}?)"
)


@dataclass(slots=True)
class Filled:
    """A text with its references filled in, the variables whose values it took, and what is wrong with it."""

    text: str
    used: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class Filler:
    """Fills in references. All that one filler takes from the environment together is at most ``budget`` characters."""

    def __init__(self, environ: Mapping[str, str], budget: int = 1024 * 1024, hints: int = 50) -> None:
        self._environ = environ
        self._budget = budget
        self._left = budget
        self._hints = hints  # comparing a name with the whole environment takes time

    def fill(self, text: str) -> Filled:
        """Fill in every reference of ``text``. A reference at fault stays as it is written."""
        filled = Filled(text)
        if "${" in text:
            filled.text = _REFERENCE.sub(lambda match: self._replace(match, filled), text)
        return filled

    def _replace(self, match: re.Match[str], filled: Filled) -> str:
        if match["escape"]:
            return "${"
        if match["bad"]:
            filled.faults.append(_not_a_reference(match["bad"]))
            return match["bad"]
        return self._look_up(match, filled)

    def _look_up(self, match: re.Match[str], filled: Filled) -> str:
        name, default = match["name"], match["default"]
        value = self._environ.get(name)
        if default is not None and not value:
            return str(default)
        if value is None:
            filled.faults.append(self._unset(name))
            return match.group()
        filled.used.append(name)
        self._left -= len(value)
        if self._left < 0:
            filled.faults.append(f"the variables fill in more than {self._budget:,} characters altogether")
            return match.group()
        return value

    def _unset(self, name: str) -> str:
        self._hints -= 1
        close = did_you_mean(name, self._environ) if self._hints >= 0 else ""
        remedy = close or "; set it, or write ${env:NAME:-default}"
        return f"environment variable {bounded(name, 60)!r} is not set{remedy}"


def _not_a_reference(text: str) -> str:
    return f"{bounded(text, 60)!r} is not a reference; write ${{env:NAME}}, or $${{ for a literal '${{'"
