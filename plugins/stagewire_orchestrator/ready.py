"""The dispatcher's one queue: outputs with their replica, and everything else that changes a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from stagewire_orchestrator.mailbox import Mailbox

Happening = tuple[Callable[..., None], tuple[Any, ...]]
"""Who handles it, and with what."""

BACKLOG = 256
"""Outputs that readers may put before they must let the dispatcher run."""


class ReadyQueue(Mailbox[Happening]):
    """Any number of tasks post; the dispatcher takes.

    Attributes:
        now: The loop's time when the dispatcher last took or a request was last added: near enough for what happened
            since, and read once for all.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._outputs = 0
        self._room = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether readers must wait."""
        return self._outputs >= BACKLOG

    def catch_up(self, now: float) -> None:
        """Note a time that is later than when the dispatcher last took, as it is when a request ends its idling."""
        self.now = max(self.now, now)

    def post(self, handler: Callable[..., None], *args: Any) -> None:
        """Have the dispatcher call ``handler(*args)``, after what was posted before."""
        self.put((handler, args))

    def post_outputs(self, handler: Callable[..., None], replica: object, outputs: Sequence[Any]) -> None:
        """The same for outputs, which are counted."""
        self._outputs += len(outputs)
        self.put((handler, (replica, outputs)))

    async def room(self) -> None:
        """Wait until the dispatcher has taken what is there."""
        while self.full:
            self._room.clear()
            await self._room.wait()

    def drain(self) -> list[Happening]:
        """Take all that is there, and let readers go on."""
        self._outputs = 0
        self._room.set()
        self.now = asyncio.get_running_loop().time()
        return super().drain()
