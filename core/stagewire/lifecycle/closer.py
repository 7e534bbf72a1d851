"""One owner closes, whoever asks and however often, and it does not give up (SD-6, SD-7)."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING

from stagewire.errors import StagewireError, StillHeld, describe
from stagewire.events import emit
from stagewire.lifecycle.attempts import Attempts, Finished
from stagewire.logs import fallback_logger

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

RETRY_EVERY = 0.1
"""Seconds between a failed attempt and the next (SD-6)."""

_owners: set[asyncio.Task[None]] = set()
"""Owners at work. The event loop holds tasks weakly, and an owner outlives the object that it closes."""


class CloseOutcome(Enum):
    """What a call of `Closer.close` found."""

    CLOSED = "closed"
    ALREADY_CLOSED = "already closed"


class CloseFailed(StagewireError):
    """An attempt to close failed; its error is ``__cause__``. The owner goes on trying: close again to join it.

    Attributes:
        attempt: The number of the attempt, from 1.
    """

    def __init__(self, name: str, attempt: int, error: BaseException) -> None:
        self.attempt = attempt
        super().__init__(f"attempt {attempt} to close {name} failed: {describe(error)}. It is being tried again")


class Closer:
    """The one owner of a close (SD-6). Belongs to one event loop.

    The first request starts one task that calls ``attempt`` until it succeeds, ``RETRY_EVERY`` seconds apart. Whoever
    closes waits for that task's next outcome; cancelling or timing out ends the wait only (SD-7). The task stands
    outside every registry, so ``attempt`` may join them all. Should the loop cancel it (as `asyncio.run` does at its
    end), what it was doing counts as a failed attempt and the next request starts another.

    Args:
        attempt: Tries to close. It keeps its own progress, as `Phases.run` does. It must not wait for this closer.
        name: What is closed, for messages and logs.
        held: Names what is still held, for `StillHeld`.
        log: Takes the events ``close.failed`` and ``close.finished``. Default: warnings on standard error.
        retry_every: Seconds from a failed attempt to the next.
    """

    def __init__(
        self,
        attempt: Callable[[], Awaitable[object]],
        *,
        name: str,
        held: Callable[[], Iterable[str]] = tuple,
        log: FilteringBoundLogger | None = None,
        retry_every: float = RETRY_EVERY,
    ) -> None:
        self.name = name
        self.attempts = Attempts()
        self._attempt = attempt
        self._held = held
        self._log = log
        self._retry_every = retry_every
        self._owner: asyncio.Task[None] | None = None
        self._reason: str | None = None

    @property
    def requested(self) -> bool:
        """Whether a close was asked for: from then on the object admits no further operation."""
        return self._reason is not None

    @property
    def closed(self) -> bool:
        """Whether an attempt succeeded."""
        return self.attempts.finished

    @property
    def held(self) -> tuple[str, ...]:
        """What is still held; empty once closed."""
        return () if self.closed else tuple(self._held())

    def request(self, reason: str = "close") -> None:
        """Ask for the close and return at once; the owner does it. Idempotent. Only on the event loop."""
        self._reason = self._reason or reason
        if self._owner is None and not self.closed:
            self._owner = asyncio.get_running_loop().create_task(self._own(), name=f"closer of {self.name}")
            _owners.add(self._owner)
            self._owner.add_done_callback(self._owner_ended)

    async def close(self, *, timeout: float | None = None, persist: bool = False) -> CloseOutcome:
        """Ask for the close and wait for the next attempt to end, for at most ``timeout`` seconds.

        With ``persist`` wait through failed attempts, until one succeeds or the time runs out.

        Returns:
            `CloseOutcome.CLOSED`, or `CloseOutcome.ALREADY_CLOSED` when it was closed before this call.

        Raises:
            CloseFailed: That attempt failed. The owner goes on; another close waits for a later attempt.
            StillHeld: The time ran out. The owner goes on; another close joins it.
        """
        if self.closed:
            return CloseOutcome.ALREADY_CLOSED
        try:
            async with asyncio.timeout(timeout):
                await self._next_success(persist=persist)
        except TimeoutError:
            if not self.closed:  # it may have succeeded in the very moment of the deadline
                raise StillHeld(self.name, self.held) from None
        return CloseOutcome.CLOSED

    def guard(self, facade: object) -> None:
        """Ask for the close when ``facade`` is garbage-collected, in whatever thread that happens.

        Call it on the event loop. Neither ``attempt`` nor ``held`` may refer to the facade, or it is never collected.
        When the loop has ended by then nothing can be closed; what is held stays until the process ends.
        """
        finalizer = weakref.finalize(facade, self._collected, asyncio.get_running_loop())
        finalizer.atexit = False

    async def _next_success(self, *, persist: bool) -> None:
        while True:
            seen = self.attempts.number
            self.request()
            outcome = await self.attempts.outcome_after(seen)
            if isinstance(outcome, Finished):
                return
            if not persist:
                raise CloseFailed(self.name, outcome.number, outcome.error) from outcome.error

    async def _own(self) -> None:
        while (error := await self._try()) is not None:
            self._failed(error)
            await asyncio.sleep(self._retry_every)
        self.attempts.finish()
        self._report("close.finished", attempt=self.attempts.number)

    async def _try(self) -> BaseException | None:
        try:
            await self._attempt()
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            return error  # something that the attempt waited for was cancelled, not this task
        except Exception as error:  # noqa: BLE001 — whatever it was, it is published and tried again
            return error
        return None

    def _failed(self, error: BaseException) -> None:
        self.attempts.fail(error)
        number = self.attempts.number
        if number & (number - 1) == 0:  # at 1, 2, 4, 8 …: an owner that tries for hours does not fill the log
            self._report("close.failed", attempt=number, cause=describe(error))

    def _owner_ended(self, task: asyncio.Task[None]) -> None:
        _owners.discard(task)
        self._owner = None
        if task.cancelled():
            self._failed(asyncio.CancelledError("the event loop cancelled the owner"))
        elif (error := task.exception()) is not None:
            self._failed(error)

    def _collected(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(self.request, "garbage collection")
        except RuntimeError:
            self._report("close.abandoned")

    def _report(self, event: str, **fields: object) -> None:
        emit(self._log or fallback_logger(), event, owner=self.name, **fields)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
