"""A gate counts the operations inside and lets no more in once it is closed (SD-2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from stagewire.errors import Closed


class ShutdownGate:
    """Counts admitted operations: after `close` none is admitted, and `quiesced` waits for those inside (SD-2).

    Belongs to one event loop. Admission takes no lock and makes no object: it is cheap enough for every operation.

    Args:
        name: What is closed, for messages: ``session 7``.
    """

    def __init__(self, name: str = "the gate") -> None:
        self.name = name
        self._inside = 0
        self._closed = False
        self._quiet = asyncio.Event()
        self._admission = Admission(self._enter, self._leave)

    @property
    def inside(self) -> int:
        """How many admitted operations have not ended."""
        return self._inside

    @property
    def closed(self) -> bool:
        """Whether admission has ended."""
        return self._closed

    def admit(self) -> Admission:
        """Return the admission of one operation: ``with gate.admit(): …``.

        Raises:
            Closed: The gate is closed. Raised by the call and, should it close in between, on entering the block.
        """
        self._refuse_if_closed()
        return self._admission

    def close(self) -> None:
        """End admission. Operations inside go on. Idempotent."""
        self._closed = True
        self._settle()

    async def quiesced(self) -> None:
        """Wait until the gate is closed and empty, which then holds for ever; at once when it already does."""
        await self._quiet.wait()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Closed(f"{self.name} is closed and admits no further operation")

    def _enter(self) -> None:
        self._refuse_if_closed()
        self._inside += 1

    def _leave(self) -> None:
        self._inside -= 1
        self._settle()

    def _settle(self) -> None:
        if self._closed and not self._inside:
            self._quiet.set()


class Admission:
    """The right to be inside a gate for the length of a ``with`` block; made by `ShutdownGate.admit`."""

    __slots__ = ("_enter", "_leave")

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> None:
        self._enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
