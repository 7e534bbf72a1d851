"""What a taker of a mailbox gets: messages in hand for the length of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Protocol

from stagewire import Delivery, Message
from stagewire_rabbitmq.mailbox import Letter


class Owner(Protocol):
    """Where the messages come from and go back to."""

    async def take(self, name: str, limit: int, timeout: float | None) -> list[Letter]: ...

    def settle(self, name: str, letters: Sequence[Letter]) -> None: ...

    def give_back(self, name: str, letters: Sequence[Letter], reason: str) -> None: ...

    async def reply(self, queue: str, correlation: str, message: Message) -> None: ...


class RabbitMQDelivery:
    """A message in hand."""

    def __init__(self, owner: Owner, letter: Letter) -> None:
        self._owner = owner
        self._letter = letter

    @property
    def message(self) -> Message:
        """The message that was put."""
        return self._letter.message

    @property
    def redelivered(self) -> bool:
        """Whether an earlier consumer took it and did not end well."""
        return self._letter.failures > 0

    async def reply(self, payload: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer a request; nothing happens when nobody waits for an answer any more."""
        letter = self._letter
        if letter.reply_to is not None and letter.correlation is not None:
            await self._owner.reply(letter.reply_to, letter.correlation, Message(payload, headers or {}))


class Take(AbstractAsyncContextManager[Sequence[Delivery]]):
    """The block that ``get_batch`` opens. Leaving it never awaits, so no cancel can cut it."""

    def __init__(self, owner: Owner, name: str, limit: int, timeout: float | None) -> None:
        self._owner = owner
        self._name = name
        self._limit = limit
        self._timeout = timeout
        self._letters: list[Letter] = []

    async def __aenter__(self) -> Sequence[Delivery]:
        self._letters = await self._owner.take(self._name, self._limit, self._timeout)
        return [RabbitMQDelivery(self._owner, letter) for letter in self._letters]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        letters, self._letters = self._letters, []
        if kind is None:
            self._owner.settle(self._name, letters)
        else:
            self._owner.give_back(self._name, letters, f"{kind.__name__}: {error}")
