"""How long the RECV thread sleeps between rounds (CH-11)."""

from __future__ import annotations


class Pace:
    """The pause after rounds that found nothing: short at first, doubling up to a cap while all stay silent."""

    def __init__(self, first: float, cap: float) -> None:
        self._first = first
        self._cap = max(first, cap)
        self._next = first

    def pause(self) -> float:
        """Return the next pause in seconds."""
        pause, self._next = self._next, min(self._cap, self._next * 2)
        return pause

    def reset(self) -> None:
        """Begin anew: something was found, or somebody new is waited for."""
        self._next = self._first
