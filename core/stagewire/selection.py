"""Block and allow lists: decided by name, before anything is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

BLOCK_VARIABLE = "STAGEWIRE_PLUGINS_BLOCK"
"""Names of plugins that are not imported, separated by commas."""

ALLOW_VARIABLE = "STAGEWIRE_PLUGINS_ALLOW"
"""Names of the only plugins that are imported, separated by commas; unset or empty: all."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which plugins may be imported, by the names of their entry points.

    Attributes:
        block: Never these.
        allow: Only these; ``None``: all that are not blocked.
    """

    block: frozenset[str] = frozenset()
    allow: frozenset[str] | None = None

    @classmethod
    def of(cls, block: Iterable[str] | None, allow: Iterable[str] | None, environ: Mapping[str, str]) -> Selection:
        """Return the lists given; each one that is ``None`` is read from the environment."""
        blocked = _names(environ, BLOCK_VARIABLE) if block is None else frozenset(block)
        allowed = (_names(environ, ALLOW_VARIABLE) or None) if allow is None else frozenset(allow)
        return cls(blocked, allowed)

    def refusal(self, name: str) -> str | None:
        """Say why the plugin may not be imported, and what to do; ``None`` when it may."""
        if name in self.block:
            return f"it is on the block list; take it off {BLOCK_VARIABLE} (or block=) to use it"
        if self.allow is not None and name not in self.allow:
            return f"it is not on the allow list; add it to {ALLOW_VARIABLE} (or allow=) to use it"
        return None

    def unmatched(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return what the lists name and nothing installed is called: most likely a slip of the pen."""
        return tuple(sorted((self.block | (self.allow or frozenset())) - set(names)))


def _names(environ: Mapping[str, str], variable: str) -> frozenset[str]:
    return frozenset(name.strip() for name in environ.get(variable, "").split(",") if name.strip())
