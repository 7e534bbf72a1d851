"""``captions.mailbox`` and ``captions.http``, the P role: ask the captioner about each image, and ask again."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from stagewire import Event, Retryable, StageContext, TransportError, describe, emit
from stagewire.lifecycle import TaskRegistry
from stagewire_examples.captions.captioner import Reply
from stagewire_examples.captions.options import AskingOptions
from stagewire_examples.captions.parts import Caption, images_of

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

ASKED_AGAIN = Event(
    "captions.asked_again", "info", frozenset({"image", "attempt", "cause"}), "The captioner did not answer well."
)


class Way(Protocol):
    """How the captioner is reached."""

    async def open(self, log: FilteringBoundLogger) -> None:
        """Make ready."""

    async def request(self, name: str, image: bytes, timeout: float) -> Any:
        """Return the reply as data.

        Raises:
            Retryable: There was none; it makes sense to ask again.
            TransportError: There was none, and there will be none.
        """

    async def close(self) -> None:
        """Let go of everything. Idempotent, also when `open` failed."""


class Asking:
    """A requester: sends each image once, and asks again as often as it may while it waits for the answer.

    A ticket is the task that asks. A captioner that says nothing in the end makes a Q that says so.

    Args:
        options: How patient it is.
        way: How the captioner is reached.
    """

    def __init__(self, options: AskingOptions, way: Way) -> None:
        self._options = options
        self._way = way
        self._images: deque[Path] = deque()
        self._tasks = TaskRegistry("questions")
        self._log: FilteringBoundLogger

    async def open(self, context: StageContext) -> None:
        """List the images and make the way ready. Raises `ConfigError` when there are none."""
        self._log = context.log
        self._images.extend(images_of(context))
        await self._way.open(context.log)

    async def send(self) -> asyncio.Task[Caption]:
        """Ask about the next image."""
        if not self._images:
            raise StopAsyncIteration
        path = self._images.popleft()
        try:
            image = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            return self._tasks.spawn(_unread(path.name, error), name=path.name)
        return self._tasks.spawn(self._ask(path.name, image), name=path.name)

    async def receive(self, ticket: asyncio.Task[Caption]) -> Caption:
        """Wait for the caption. Cancelled, it ends the asking."""
        return await ticket

    async def close(self) -> None:
        """End what is still asked, and the way."""
        self._tasks.close()
        self._tasks.cancel_all()
        await self._tasks.join()
        await self._way.close()

    async def _ask(self, name: str, image: bytes) -> Caption:
        reply = Reply(error="it was never asked")
        for attempt in range(1, self._options.attempts + 1):
            reply = await self._once(name, image)
            if reply.facts is not None or not reply.again:
                return Caption(name, reply.facts, reply.error, attempt)
            emit(self._log, ASKED_AGAIN, image=name, attempt=attempt, cause=reply.error)
            if attempt < self._options.attempts:
                await asyncio.sleep(self._options.backoff * 2.0 ** (attempt - 1))
        return Caption(name, None, f"{reply.error}, asked {self._options.attempts} times", self._options.attempts)

    async def _once(self, name: str, image: bytes) -> Reply:
        try:
            return Reply.model_validate(await self._way.request(name, image, self._options.timeout))
        except TransportError as error:
            return Reply(error=describe(error), again=isinstance(error, Retryable))
        except ValidationError as error:
            return Reply(error=f"the captioner's reply cannot be understood: {error}")


async def _unread(name: str, error: OSError) -> Caption:
    return Caption(name, None, f"it cannot be read: {error}")
