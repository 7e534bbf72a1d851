"""A framework that others depend on asks them to stop first and waits for their acknowledgement (SD-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from stagewire.errors import Closed, StagewireError, describe
from stagewire.lifecycle.attempts import AttemptFailed, Attempts
from stagewire.lifecycle.signal import StopSignal


class Participant(Protocol):
    """What a framework waits for before it stops: a `Dependent`, or a `Closer` of what stands on it."""

    @property
    def name(self) -> str: ...

    @property
    def attempts(self) -> Attempts:
        """What became of its attempts to stop."""

    def request(self, reason: str) -> None:
        """Ask it to stop; returns at once. Idempotent."""


class Dependent:
    """One dependent's side: it waits for the request, stops, and says how that went (SD-4).

    The request is kept, so it may come before anybody waits for it. Belongs to one event loop.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.attempts = Attempts()
        self._requested = StopSignal()

    def request(self, reason: str) -> None:
        """Ask the dependent to stop. Idempotent."""
        self._requested.set(reason)

    async def requested(self) -> str:
        """Wait until the dependent is asked to stop; returns the reason. At once when it already was."""
        return await self._requested.wait()

    def failed(self, error: BaseException) -> None:
        """Acknowledge: this attempt to stop failed, and there will be another."""
        self.attempts.fail(error)

    def finished(self) -> None:
        """Acknowledge: stopped for good. Also without a request. Idempotent."""
        self.attempts.finish()

    async def serve(self, stop: Callable[[], Awaitable[object]], *, retry_every: float = 0.1) -> None:
        """Wait for the request, then call ``stop`` until it succeeds, ``retry_every`` seconds apart; acknowledge each.

        Run it as a task that ``stop`` does not itself join. Cancelling it leaves the state as it was.
        """
        await self.requested()
        while not self.attempts.finished:
            try:
                await stop()
            except Exception as error:  # noqa: BLE001 — whatever it was, it is acknowledged and tried again
                self.failed(error)
                await asyncio.sleep(retry_every)
            else:
                self.finished()


class DependentsFailed(StagewireError):
    """Some dependents could not stop this time; the framework stays up for them. Ask again: they go on trying.

    Attributes:
        failures: Name and error of each.
    """

    def __init__(self, framework: str, failures: Sequence[tuple[str, BaseException]]) -> None:
        self.failures = tuple(failures)
        causes = "; ".join(f"{name}: {describe(error, 200)}" for name, error in self.failures)
        super().__init__(f"{framework} stays up, for its dependents did not stop: {causes}. Ask again")


class Dependents:
    """The framework's side: who depends on it, and whether they have stopped (SD-4). Belongs to one event loop.

    Args:
        name: The framework, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._participants: list[Participant] = []
        self._reason: str | None = None

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The names of those that have not stopped."""
        return tuple(each.name for each in self._live())

    def register(self, name: str) -> Dependent:
        """Make and add a dependent. Raises `Closed` once a stop was requested."""
        dependent = Dependent(name)
        self.add(dependent)
        return dependent

    def add(self, participant: Participant) -> None:
        """Add a dependent. Raises `Closed` once a stop was requested."""
        if self._reason is not None:
            raise Closed(f"{self.name} is stopping ({self._reason}): {participant.name!r} cannot depend on it any more")
        self._participants = [*self._live(), participant]

    def request(self, reason: str) -> None:
        """Ask every dependent to stop and admit no further one; returns at once. The first reason is kept."""
        self._reason = self._reason or reason
        for each in self._live():
            each.request(self._reason)

    async def stopped(self, reason: str) -> None:
        """Ask every dependent to stop and wait for each one's answer to this very request.

        An answer is success, or the failure of an attempt that ends after this call; an older failure is none. May be
        cancelled and called again.

        Raises:
            DependentsFailed: An attempt of one or more failed.
        """
        seen = [(each, each.attempts.number) for each in self._live()]
        self.request(reason)
        outcomes = [(each.name, await each.attempts.outcome_after(number)) for each, number in seen]
        failures = [(name, outcome.error) for name, outcome in outcomes if isinstance(outcome, AttemptFailed)]
        if failures:
            raise DependentsFailed(self.name, failures)

    def _live(self) -> list[Participant]:
        return [each for each in self._participants if not each.attempts.finished]
