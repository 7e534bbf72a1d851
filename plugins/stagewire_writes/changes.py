"""Tells who caches that files changed (S3-5)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

Listener = Callable[[str, str], None]
"""Takes an export and a path that is no longer what it was; must return at once."""


class Changes:
    """Listeners for changes that this controller made. Belongs to one event loop."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Ask to be told; returns what ends the subscription."""
        self._listeners.append(listener)

        def end() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def tell(self, export: str, path: str, *, parents: bool) -> None:
        """Tell of a changed path and, with ``parents``, of every directory above it, the export itself last."""
        if not self._listeners:
            return
        paths = [path]
        while parents and path:
            path = path.rpartition("/")[0]
            paths.append(path)
        for each in paths:
            for listener in list(self._listeners):
                listener(export, each)
