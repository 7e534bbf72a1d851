"""The dispatcher's one queue: outputs with their replica, and everything else that changes a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

Happening = tuple[Callable[..., None], tuple[Any, ...]]
"""Who handles it, and with what."""

BACKLOG = 256
"""Outputs that readers may put before they must let the dispatcher run."""


class ReadyQueue:
    """Any number of tasks put, one takes: everything at once, so a busy dispatcher wakes once for many outputs."""

    def __init__(self) -> None:
        self._waiting: list[Happening] = []
        self._outputs = 0
        self._taker: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether readers must wait."""
        return self._outputs >= BACKLOG

    def post(self, handler: Callable[..., None], *args: Any) -> None:
        """Have the dispatcher call ``handler(*args)``, after what was put before."""
        self._waiting.append((handler, args))
        taker = self._taker
        if taker is not None and not taker.done():
            taker.set_result(None)

    def post_outputs(self, handler: Callable[..., None], replica: object, outputs: Sequence[Any]) -> None:
        """The same for outputs, which are counted."""
        self._outputs += len(outputs)
        self.post(handler, replica, outputs)

    def clear(self) -> None:
        """Drop everything; for shutdown."""
        self._waiting.clear()
        self._outputs = 0

    async def room(self) -> None:
        """Wait until the dispatcher has taken what is there."""
        while self.full:
            self._room.clear()
            await self._room.wait()

    async def take(self) -> list[Happening]:
        """Wait until there is something and take all of it."""
        while not self._waiting:
            self._taker = asyncio.get_running_loop().create_future()
            try:
                await self._taker
            finally:
                self._taker = None
        taken, self._waiting = self._waiting, []
        self._outputs = 0
        self._room.set()
        return taken
