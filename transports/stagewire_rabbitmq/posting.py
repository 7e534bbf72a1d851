"""Publishing from the event loop: confirmed, and tried again while the queue is full, within a deadline."""

from __future__ import annotations

import asyncio
from typing import Any

from stagewire import TransportFull
from stagewire_rabbitmq.inlet import post
from stagewire_rabbitmq.lanes import Lane
from stagewire_rabbitmq.publisher import Publisher, unconfirmed
from stagewire_rabbitmq.wire import Wire

FIRST_RETRY = 0.01
LAST_RETRY = 0.5


class Posting:
    """Puts one body at a time and waits for its confirm. Belongs to one event loop. Cancelled, it may have arrived."""

    def __init__(self, wire: Wire, publisher: Publisher) -> None:
        self._wire = wire
        self._publisher = publisher

    async def put(self, lane: Lane, body: bytes, timeout: float, **properties: Any) -> None:
        """Publish with `Publisher.submit`'s properties. Raises what the broker, or the deadline, made of it."""
        deadline = asyncio.get_running_loop().time() + timeout
        delay = FIRST_RETRY
        while True:
            try:
                await self._once(lane, body, deadline, timeout, **properties)
            except TransportFull:
                lane.counters.full += 1
                if asyncio.get_running_loop().time() + delay >= deadline:
                    raise
                await asyncio.sleep(delay)
                delay = min(delay * 2, LAST_RETRY)
            else:
                return

    async def depth(self, lane: Lane, timeout: float) -> int | None:
        """Return how many messages are ready in the lane's queue; ``None`` when the broker does not tell in time."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()

        def answered(count: int) -> None:
            if not answer.done():
                answer.set_result(count)

        self._publisher.count(lane, lambda count: post(loop, lambda: answered(count)))
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            return None

    async def _once(self, lane: Lane, body: bytes, deadline: float, timeout: float, **properties: Any) -> None:
        loop = asyncio.get_running_loop()
        settled = asyncio.Event()
        ticket = self._publisher.submit(lane, [body], then=lambda: post(loop, settled.set), **properties)
        try:
            async with asyncio.timeout_at(deadline):
                await settled.wait()
        except TimeoutError:
            if not ticket.settled[0]:
                raise unconfirmed(self._wire, timeout) from None
        finally:
            if not ticket.settled[0]:
                self._publisher.abandon(lane, ticket)
        if (result := ticket.results[0]) is not None:
            raise result
