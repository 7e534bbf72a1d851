"""What became of the attempts at something that must succeed in the end, kept for waiters (SD-4, SD-6)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pending:
    """No attempt has ended yet."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """The last attempt that ended was the ``number``-th (from 1), and it failed."""

    number: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class Finished:
    """The ``number``-th attempt (from 1) succeeded. Nothing follows."""

    number: int


class Attempts:
    """Keeps the last outcome, so that whoever comes late still sees it. Belongs to one event loop."""

    def __init__(self) -> None:
        self._state: Pending | AttemptFailed | Finished = Pending()
        self._changed = asyncio.Event()

    @property
    def state(self) -> Pending | AttemptFailed | Finished:
        """The last outcome."""
        return self._state

    @property
    def number(self) -> int:
        """How many attempts have ended."""
        return 0 if isinstance(self._state, Pending) else self._state.number

    @property
    def finished(self) -> bool:
        """Whether an attempt succeeded."""
        return isinstance(self._state, Finished)

    def fail(self, error: BaseException) -> None:
        """Publish that an attempt failed. Does nothing after success."""
        if not self.finished:
            self._publish(AttemptFailed(self.number + 1, error))

    def finish(self) -> None:
        """Publish success. Idempotent."""
        if not self.finished:
            self._publish(Finished(self.number + 1))

    async def outcome_after(self, number: int) -> AttemptFailed | Finished:
        """Wait for success, or for the failure of an attempt later than the ``number``-th; at once when it is there."""
        while True:
            state = self._state
            if isinstance(state, Finished) or (isinstance(state, AttemptFailed) and state.number > number):
                return state
            await self._changed.wait()

    def _publish(self, state: AttemptFailed | Finished) -> None:
        self._state = state
        self._changed.set()
        self._changed = asyncio.Event()
