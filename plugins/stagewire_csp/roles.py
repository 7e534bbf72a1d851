"""What the runtime asks of the three roles, and how it calls them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from stagewire import OutputFile
from stagewire_csp.failures import FailureBook, Role, RoleFailed
from stagewire_csp.inventory import SideName
from stagewire_csp.slots import Outcome
from stagewire_csp.source import SourceEnded

R = TypeVar("R")


class MakesT(Protocol):
    """The S role, opened: a `stagewire.Producer` or any object with this method."""

    async def produce(self) -> Any:
        """Make one T. Raise `StopAsyncIteration` when there is no more to make. Called by several workers at once."""


class RequestsQ(Protocol):
    """The P role, opened: a `stagewire.Requester` or any object with these methods."""

    async def send(self) -> Any:
        """Send one request and return its ticket. Raise `StopAsyncIteration` when all were sent."""

    async def receive(self, ticket: Any) -> Any:
        """Wait for the answer to the ticket's request and return the Q. Called for many tickets at once."""


class ConsumesPairs(Protocol):
    """The C role, opened: a `stagewire.Consumer` or any object with this method."""

    async def consume(self, t: Any, q: Any) -> None:
        """Use up the pair. Called by several workers at once."""


@runtime_checkable
class Settles(Protocol):
    """What a producer or a requester may also have, to learn what became of each resource it made.

    That is where a source acknowledges a message, closes what the resource holds, or makes the thing once more.
    """

    def settled(self, resource: Any, outcome: Outcome) -> None:
        """Take one resource's fate, once. Called on the event loop; returns at once."""


@runtime_checkable
class Writes(Protocol):
    """What a role of ``pipeline: csp`` may also have, to name the files that it wrote."""

    def outputs(self) -> Sequence[OutputFile]:
        """Return the files. Called once, after ``close``."""


@dataclass(frozen=True, slots=True)
class Roles:
    """The three roles of a run, opened."""

    producer: MakesT
    requester: RequestsQ
    consumer: ConsumesPairs

    def settler(self, side: SideName) -> Settles | None:
        """Return who wants to know what became of a side's resources, if anybody does."""
        role = self.producer if side == "t" else self.requester
        return role if isinstance(role, Settles) else None


class Caller:
    """Calls roles: whatever they raise becomes `RoleFailed`, so it cannot be mistaken for a fault of the runtime.

    Args:
        book: Where successes are noted; failures are noted by who handles them.
    """

    def __init__(self, book: FailureBook) -> None:
        self._book = book

    async def call(self, role: Role, method: Callable[..., Awaitable[R]], *args: Any) -> R:
        """Call a role's method.

        Raises:
            RoleFailed: It raised, or ended in a cancel that nobody asked of the worker.
            SourceEnded: ``produce`` or ``send`` said that there is no more.
        """
        try:
            result = await method(*args)
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            raise RoleFailed.of(role, error) from error
        except StopAsyncIteration as error:
            if role in {"produce", "send"}:
                raise SourceEnded from None
            raise RoleFailed.of(role, error) from error
        except Exception as error:  # a role may raise anything
            raise RoleFailed.of(role, error) from error
        self._book.succeeded(role)
        return result

    async def call_within(
        self, seconds: float | None, role: Role, method: Callable[..., Awaitable[R]], *args: Any
    ) -> R:
        """Call a role's method that fails when it takes longer than ``seconds``; ``None``: however long."""
        try:
            async with asyncio.timeout(seconds):
                return await self.call(role, method, *args)
        except TimeoutError as error:
            raise RoleFailed(role, f"it took longer than {seconds} s") from error


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
