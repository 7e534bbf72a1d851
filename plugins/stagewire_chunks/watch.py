"""Telling others without being hurt by them: log events, and callbacks of the owner."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stagewire import StageId, describe, emit

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class Watch:
    """Emits events bound to one edge, and calls the owner's hints. Neither ever raises an `Exception`.

    Called outside every lock (CH-13).
    """

    def __init__(self, log: FilteringBoundLogger | None, stage: StageId, edge: str) -> None:
        self._log = log
        self._ids = {"stage": stage, "edge": edge}
        self.edge = edge

    def event(self, name: str, **fields: Any) -> None:
        """Emit an event of the catalogue."""
        if self._log is not None:
            with suppress(Exception):  # a log that cannot be written must not end a request
                emit(self._log, name, **self._ids, **fields)

    def call(self, hint: Callable[..., object] | None, *args: Any) -> None:
        """Call a hint of the owner, if there is one."""
        if hint is None:
            return
        try:
            hint(*args)
        except Exception as error:  # noqa: BLE001 — the owner's fault is the owner's; chunks go on
            name = getattr(hint, "__qualname__", type(hint).__name__)
            self.event("chunk.callback_failed", callback=name, cause=describe(error), exc_info=error)
