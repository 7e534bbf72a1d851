from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import LoggingOptions, StagewireError, make_logger
from stagewire_csp import Inventory, PairLease, ResourceEnvelope, Slots

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def loop_time() -> float:
    return asyncio.get_running_loop().time()


class Claim:
    """A consumer that claims one pair and holds it until it is told how to end."""

    def __init__(self, inventory: Inventory) -> None:
        self.pair: tuple[Any, Any] | None = None
        self.served_at: float | None = None
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run(inventory.claim_pair()))

    async def _run(self, lease: PairLease) -> None:
        async with lease as pair:
            self.pair = (pair.t, pair.q)
            self.served_at = loop_time()
            await self._end

    async def finish(self, error: Exception | None = None) -> None:
        """Leave the block, with an error if one is given."""
        if error is None:
            self._end.set_result(None)
        else:
            self._end.set_exception(error)
        with suppress(type(error) if error else StagewireError):
            await self.task

    async def cancel(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class Store:
    """An inventory in the loop's time, with shorthands. Checks the books whenever it is asked to."""

    def __init__(self, t: int = 8, q: int = 8, **options: Any) -> None:
        self.fates: list[tuple[str, Any, str]] = []
        self.inventory = Inventory(t, q, clock=loop_time, on_settled=self._settled, **options)

    def _settled(self, side: str, resource: Any, outcome: str) -> None:
        self.fates.append((side, resource, str(outcome)))

    async def put_t(self, resource: Any, ttl: float | None = None) -> ResourceEnvelope:
        envelope = await ResourceEnvelope.create_with_slot(resource, self.inventory.t_slots, ttl=ttl)
        await self.inventory.put_t(envelope)
        return envelope

    async def put_q(self, resource: Any, ttl: float | None = None) -> ResourceEnvelope:
        envelope = await ResourceEnvelope.create_with_slot(resource, self.inventory.q_slots, ttl=ttl)
        await self.inventory.put_q(envelope)
        return envelope

    async def put(self, side: str, resource: Any, ttl: float | None = None) -> ResourceEnvelope:
        return await (self.put_t if side == "t" else self.put_q)(resource, ttl)

    async def put_pairs(self, *names: Any) -> None:
        for name in names:
            await self.put_t(f"t{name}")
            await self.put_q(f"q{name}")

    async def claim(self, rounds: int = 20) -> Claim:
        """Start a claim and let it come as far as it can, or for so many rounds of the loop."""
        claim = Claim(self.inventory)
        await settle(rounds)
        return claim

    def slots(self, side: str) -> Slots:
        return self.inventory.t_slots if side == "t" else self.inventory.q_slots

    def check(self) -> None:
        """Produced = consumed + written off + expired + held + waiting for a slot, on each side (CSP-14)."""
        for slots, depth in zip((self.slots("t"), self.slots("q")), self.inventory.depths, strict=True):
            settled = slots.consumed + slots.written_off + slots.expired
            assert slots.produced == settled + slots.held + slots.waiting
            assert 0 <= depth <= slots.held <= slots.cap
            assert 0 <= slots.free <= slots.cap


async def settle(rounds: int = 20) -> None:
    """Let everything run that can."""
    for _ in range(rounds):
        await asyncio.sleep(0)


def suspends(coroutine: Coroutine[Any, Any, Any]) -> bool:
    """Whether a coroutine, driven by hand outside any task, suspends instead of ending at once."""
    try:
        coroutine.send(None)
    except StopIteration:
        return False
    coroutine.close()
    return True


@pytest.fixture
def make_store() -> type[Store]:
    return Store


@pytest.fixture
def settled() -> Callable[[], Coroutine[Any, Any, None]]:
    return settle


@pytest.fixture
def does_suspend() -> Callable[[Coroutine[Any, Any, Any]], bool]:
    return suspends


Hook = Callable[..., Coroutine[Any, Any, None]]


def pause(seconds: float) -> Hook:
    async def sleep(*_: Any) -> None:
        await asyncio.sleep(seconds)

    return sleep


class Script:
    """Three roles in one object; what happens in each call is up to the test."""

    def __init__(self, *, count: int | None = None) -> None:
        self.count = count
        self.made = 0
        self.asked = 0
        self.produced = 0
        self.answered = 0
        self.pairs: list[tuple[Any, Any]] = []
        self.on_produce: Hook = pause(0.1)
        self.on_send: Hook = pause(0.01)
        self.on_receive: Hook = pause(1)
        self.on_consume: Hook = pause(0.2)

    async def produce(self) -> Any:
        if self.made == self.count:
            raise StopAsyncIteration
        self.made += 1
        number = self.made
        await self.on_produce(number)
        self.produced += 1
        return f"t{number}"

    async def send(self) -> Any:
        if self.asked == self.count:
            raise StopAsyncIteration
        self.asked += 1
        number = self.asked
        await self.on_send(number)
        return number

    async def receive(self, ticket: Any) -> Any:
        await self.on_receive(ticket)
        self.answered += 1
        return f"q{ticket}"

    async def consume(self, t: Any, q: Any) -> None:
        await self.on_consume(t, q)
        self.pairs.append((t, q))


@pytest.fixture
def make_script() -> type[Script]:
    return Script


class LogBook:
    """A logger and what it has written, as JSON."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        options = LoggingOptions(level="debug", format="json")
        self.log: FilteringBoundLogger = make_logger(options, pipeline="test", stream=self._stream)

    def named(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self._stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]


@pytest.fixture
def book() -> LogBook:
    return LogBook()
