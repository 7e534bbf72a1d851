"""How many messages of one sender may wait in one mailbox, and who waits to put more (TR-5).

The broker counts messages of its own, which are whole batches, and not what its consumers have taken and nobody
handled; quorum queues count late. So each sender counts what it put until a consumer tells that it was handled.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict, deque
from collections.abc import Iterable

from stagewire import Permanent, TransportFull


class Room:
    """Belongs to one event loop. First come, first served."""

    def __init__(self, mailbox: str, limit: int) -> None:
        self._mailbox = mailbox
        self._limit = limit
        self._numbers = itertools.count(1)
        self._put: OrderedDict[int, int] = OrderedDict()
        self._count = 0
        self._waiting: deque[tuple[asyncio.Future[int], int]] = deque()
        self._fault: Exception | None = None
        self.freed = 0
        """How many batches were let go of so far."""

    async def take(self, count: int, timeout: float) -> int:
        """Wait for room for so many messages; returns the batch's number. Cancelled, it has taken none.

        Raises:
            TransportFull: There was none in time.
            Permanent: There can be none.
        """
        if count > self._limit:
            raise Permanent(
                f"mailbox {self._mailbox!r} holds {self._limit} messages (option mailbox_messages) and the batch has"
                f" {count}: put smaller batches"
            )
        if self._fault is not None:
            raise self._fault
        if not self._waiting and self._fits(count):
            return self._occupy(count)
        waiter: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((waiter, count))
        try:
            async with asyncio.timeout(timeout):
                return await waiter
        except TimeoutError:
            if _has_number(waiter):
                return waiter.result()
            raise TransportFull(
                f"mailbox {self._mailbox!r} holds {self._count} messages that nobody has handled"
                " (option mailbox_messages): put it again when its consumer has caught up"
            ) from None
        except asyncio.CancelledError:
            if _has_number(waiter):
                self.free([waiter.result()])
            raise
        finally:
            self._forget(waiter)

    def free(self, numbers: Iterable[int]) -> None:
        """Let go of batches that were handled, or not put after all."""
        for number in numbers:
            count = self._put.pop(number, 0)
            self._count -= count
            self.freed += count > 0
        self._admit()

    def fail(self, fault: Exception) -> None:
        """Let everybody who waits, now and later, have this error."""
        self._fault = fault
        for waiter, _count in self._waiting:
            if not waiter.done():
                waiter.set_exception(fault)

    def write_off(self) -> None:
        """Let go of the older half: what was told of it must have been lost, as its consumer may have been."""
        self.free(list(self._put)[: (len(self._put) + 1) // 2])

    def _fits(self, count: int) -> bool:
        return self._count + count <= self._limit

    def _occupy(self, count: int) -> int:
        number = next(self._numbers)
        self._put[number] = count
        self._count += count
        return number

    def _admit(self) -> None:
        while self._waiting:
            waiter, count = self._waiting[0]
            if not waiter.done():
                if not self._fits(count):
                    return
                waiter.set_result(self._occupy(count))
            self._waiting.popleft()

    def _forget(self, waiter: asyncio.Future[int]) -> None:
        self._waiting = deque(each for each in self._waiting if each[0] is not waiter)
        self._admit()


def _has_number(waiter: asyncio.Future[int]) -> bool:
    return waiter.done() and not waiter.cancelled() and waiter.exception() is None
