"""Whom a round of the RECV thread visits (CH-11)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import TypeVar

T = TypeVar("T")

_MANY = 4_096
"""Names that are kept; beyond them everybody is visited."""


class News:
    """The requests that something may have come for, as far as the transport's hints name them.

    A transport that names nobody has everybody visited in each round. One that does spares the silent: they are visited
    when nothing was named, and every ``full_every`` seconds at the latest, so a hint may still be missed. `note` may be
    called from any thread, also while `choose` runs; everything else belongs to the rounds.
    """

    def __init__(self, full_every: float) -> None:
        self._full_every = full_every
        self._full_at = float("-inf")
        self._named: deque[str] = deque()
        self._everybody = False
        self.given = False
        """Whether the transport names requests at all."""

    @property
    def pending(self) -> bool:
        """Whether somebody was named since the last round."""
        return bool(self._named)

    def note(self, requests: Collection[str] = ()) -> None:
        """Note that something may have come for these requests, or for anybody if there are none."""
        if not requests or len(self._named) > _MANY:
            self._everybody = True
        else:
            self.given = True
            self._named.extend(requests)

    def choose(self, registered: Mapping[str, T], now: float) -> list[T]:
        """Return whom to visit in the round that begins."""
        named: dict[str, None] = {}
        while self._named:  # nobody else takes names out
            named[self._named.popleft()] = None
        everybody, self._everybody = self._everybody, False
        if named and not everybody and now < self._full_at:
            return [registered[request] for request in named if request in registered]
        self._full_at = now + self._full_every
        return list(registered.values())
