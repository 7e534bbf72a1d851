"""Admission: which ids are in use, and how many requests may be in flight (OR-12, OR-16). It knows no ledger (OR-1)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from stagewire import Closed, StagewireError
from stagewire_orchestrator.errors import RequestRefused

WireId = Callable[[str, int], str]
"""Makes the id of one use of an id: ``wire_id(id, number)``, where the number differs for every admission."""


class _Waiter:
    """One request in front of the door. ``granted``: a slot is set aside for it. ``refused``: why it must go."""

    __slots__ = ("future", "granted", "refused")

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.granted = False
        self.refused: StagewireError | None = None

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Door:
    """Counts requests in and out. Belongs to one event loop; nothing in it waits but `enter`.

    Args:
        slots: How many requests may be in flight.
        wire_id: Makes the ids of single uses.
        wait: Whether a request waits for a slot; else it is refused.
        patience: The longest such wait, in seconds.
    """

    def __init__(self, slots: int, wire_id: WireId, *, wait: bool = True, patience: float | None = None) -> None:
        self._slots = self._free = slots
        self._wire_id = wire_id
        self._may_wait = wait
        self._patience = patience
        self._inside: dict[str, str] = {}
        self._waiting: dict[str, _Waiter] = {}
        self._queue: deque[_Waiter] = deque()
        self._admitted = 0
        self._closed = False

    @property
    def inside(self) -> int:
        """How many ids are in use."""
        return len(self._inside)

    @property
    def waiting(self) -> int:
        """How many requests wait to be admitted."""
        return len(self._waiting)

    @property
    def slots_taken(self) -> int:
        """How many slots are taken."""
        return self._slots - self._free

    def wire(self, request_id: str) -> str | None:
        """Return the id of the use that is now admitted, if one is."""
        return self._inside.get(request_id)

    async def enter(self, request_id: str) -> str:
        """Admit one request and return the id of this use; waits for a slot or refuses. Cancelling it takes no slot.

        Raises:
            RequestRefused: The id is in use, there is no slot (in time), or the request was aborted while it waited.
            Closed: Nobody is admitted any more.
        """
        wire = self.enter_now(request_id)
        if wire is None:
            await self._wait(request_id)
            wire = self._admit(request_id)
        return wire

    def enter_now(self, request_id: str) -> str | None:
        """Admit one request if that needs no waiting, else return ``None``. Raises as `enter` does."""
        if self._closed:
            raise _shut(request_id)
        if request_id in self._inside or request_id in self._waiting:
            raise RequestRefused(f"request id {request_id!r} is in use: abort it, or wait for its last output")
        if self._free <= 0:
            return None
        self._free -= 1
        return self._admit(request_id)

    def leave(self, request_id: str) -> None:
        """Make an id usable again; its slot stays taken until `free`."""
        del self._inside[request_id]

    def free(self) -> None:
        """Give one slot back, to the request that has waited longest."""
        while self._queue:
            waiter = self._queue.popleft()
            if waiter.refused is None:
                waiter.granted = True
                waiter.wake()
                return
        self._free += 1

    def abort_waiting(self, request_id: str) -> bool:
        """Refuse a request that waits to be admitted; returns whether one did."""
        waiter = self._waiting.get(request_id)
        if waiter is None:
            return False
        _refuse(waiter, RequestRefused(f"request {request_id!r} was aborted while it waited to be admitted"))
        return True

    def close(self) -> None:
        """Admit nobody any more; those who wait get `Closed`."""
        self._closed = True
        for request_id, waiter in self._waiting.items():
            _refuse(waiter, _shut(request_id))

    def _admit(self, request_id: str) -> str:
        self._admitted += 1
        wire = self._inside[request_id] = self._wire_id(request_id, self._admitted)
        return wire

    async def _wait(self, request_id: str) -> None:
        full = f"{self._slots} requests are in flight, which is the limit"
        if not self._may_wait:
            raise RequestRefused(f"request {request_id!r} was refused: {full}; try again when one has ended")
        waiter = self._waiting[request_id] = _Waiter()
        self._queue.append(waiter)
        try:
            async with asyncio.timeout(self._patience):
                await waiter.future
        except BaseException as error:
            self._give_up(waiter)
            if isinstance(error, TimeoutError):
                raise RequestRefused(f"request {request_id!r} waited {self._patience:g} s, and {full}") from None
            raise
        finally:
            del self._waiting[request_id]
        if waiter.refused is not None:
            self._give_up(waiter)
            raise waiter.refused

    def _give_up(self, waiter: _Waiter) -> None:
        if waiter.granted:
            self.free()
        elif waiter in self._queue:
            self._queue.remove(waiter)


def _refuse(waiter: _Waiter, why: StagewireError) -> None:
    waiter.refused = waiter.refused or why
    waiter.wake()


def _shut(request_id: str) -> Closed:
    return Closed(f"the orchestrator is shut down: request {request_id!r} was not admitted")
