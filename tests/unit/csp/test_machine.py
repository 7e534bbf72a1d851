"""A Hypothesis state machine: the inventory against a plain model, through any order of what can happen (CSP-14).

Each rule does one thing, lets the event loop run until nothing moves, and the model does the same by the book. The
clock is the machine's own, so time passes only where a rule says so, also between a grant and the resumption of the
claim that it went to.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stagewire import Closed
from stagewire.testing import VirtualLoop
from stagewire_csp import Inventory, NoMorePairs, ResourceEnvelope

SLOTS = 3
TTLS = st.sampled_from([None, 1.0, 2.0, 3.0, 50.0])
SIDES = st.sampled_from(["t", "q"])
INDEX = st.integers(0, 20)


@dataclass
class Item:
    name: str
    deadline: float

    def fresh(self, now: float) -> bool:
        return self.deadline > now


@dataclass
class Side:
    """One side by the book."""

    stock: list[Item] = field(default_factory=list)
    waiting: list[Item] = field(default_factory=list)
    out: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    ended: bool = False

    @property
    def free(self) -> int:
        return SLOTS - len(self.stock) - self.out

    def drop_expired(self, now: float) -> None:
        kept = [item for item in self.stock if item.fresh(now)]
        self.fates["expired"] += len(self.stock) - len(kept)
        self.stock = kept


@dataclass
class Model:
    """Everything by the book. A claim is a number; ``held`` says which pair it got."""

    now: float = 0.0
    sides: dict[str, Side] = field(default_factory=lambda: {"t": Side(), "q": Side()})
    claims: list[int] = field(default_factory=list)
    held: dict[int, tuple[Item, Item]] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    closed: bool = False
    reserved: bool = False

    def touch(self) -> None:
        """A put or a claim: drop what has expired, let in who waits for a slot, pair, until nothing changes."""
        while True:
            before = self._shape()
            for side in self.sides.values():
                side.drop_expired(self.now)
            self.let_in()
            while self.claims and all(side.stock for side in self.sides.values()):
                if not all(side.stock[0].fresh(self.now) for side in self.sides.values()):
                    break
                self.held[self.claims.pop(0)] = self._pair()
            if self._shape() == before:
                break
        if not self.reserved:
            self.refuse()

    def refuse(self) -> None:
        """End the waits that are in vain. Not while a granted pair may still come back."""
        if self._over():
            self.refused |= set(self.claims)
            self.claims.clear()

    def let_in(self) -> bool:
        """Give free slots to who waits for one; returns whether anything was put."""
        moved = False
        for side in self.sides.values():
            while side.waiting and side.free:
                item = side.waiting.pop(0)
                if self.closed or side.ended:
                    side.fates["written_off"] += 1
                else:
                    side.stock.append(item)
                    moved = True
        return moved

    def settle(self) -> None:
        """A slot became free: that alone is no put, but who gets it puts."""
        if self.let_in():
            self.touch()

    def _pair(self) -> tuple[Item, Item]:
        t, q = (self.sides[name].stock.pop(0) for name in "tq")
        for side in self.sides.values():
            side.out += 1
        return t, q

    def _over(self) -> bool:
        return self.closed or any(side.ended and not side.stock for side in self.sides.values())

    def _shape(self) -> tuple[int, ...]:
        sides = self.sides.values()
        return (len(self.claims), *(len(side.stock) for side in sides), *(len(side.waiting) for side in sides))


class InventoryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.reports: list[Any] = []
        self.loop.set_exception_handler(lambda _loop, report: self.reports.append(report))
        self.model = Model()
        self.inventory = Inventory(SLOTS, SLOTS, clock=lambda: self.model.now)
        self.count = 0
        self.producers: dict[str, asyncio.Task[None]] = {}
        self.claims: dict[int, asyncio.Task[None]] = {}
        self.ends: dict[int, asyncio.Future[None]] = {}
        self.got: dict[int, tuple[str, str]] = {}

    # what happens in the real world

    def run_until_quiet(self) -> None:
        async def quiet() -> None:
            for _ in range(40):
                await asyncio.sleep(0)

        self.loop.run_until_complete(quiet())

    async def produce(self, side: str, name: str, ttl: float | None) -> None:
        slots = self.inventory.t_slots if side == "t" else self.inventory.q_slots
        put = self.inventory.put_t if side == "t" else self.inventory.put_q
        with suppress(Closed), await ResourceEnvelope.create_with_slot(name, slots, ttl=ttl) as envelope:
            await put(envelope)

    async def consume(self, number: int) -> None:
        async with self.inventory.claim_pair() as pair:
            self.got[number] = (pair.t, pair.q)
            await self.ends[number]

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self.loop.create_task(coroutine)

    # what may happen

    @rule(side=SIDES, ttl=TTLS)
    def put(self, side: str, ttl: float | None) -> None:
        self.begin_put(side, ttl)
        self.run_until_quiet()

    def begin_put(self, side: str, ttl: float | None) -> None:
        """Both worlds, up to where the put is done in the model and the real task was started."""
        self.count += 1
        name = f"{side}{self.count}"
        self.producers[name] = self.start(self.produce(side, name, ttl))
        book = self.model.sides[side]
        book.waiting.append(Item(name, float("inf") if ttl is None else self.model.now + ttl))
        self.model.settle()

    @rule()
    def claim(self) -> None:
        self.count += 1
        number = self.count
        self.ends[number] = self.loop.create_future()
        self.claims[number] = self.start(self.consume(number))
        self.model.claims.append(number)
        self.model.touch()
        self.run_until_quiet()

    @precondition(lambda self: self.model.held)
    @rule(index=INDEX, how=st.sampled_from(["consumed", "error", "cancel"]))
    def end_claim(self, index: int, how: str) -> None:
        number = sorted(self.model.held)[index % len(self.model.held)]
        if how == "consumed":
            self.ends[number].set_result(None)
        elif how == "error":
            self.ends[number].set_exception(ValueError("no"))
        else:
            self.claims[number].cancel()
        self.release(number, "consumed" if how == "consumed" else "written_off")
        self.run_until_quiet()

    def release(self, number: int, fate: str) -> None:
        del self.model.held[number]
        for side in self.model.sides.values():
            side.out -= 1
            side.fates[fate] += 1
        self.model.settle()

    @precondition(lambda self: self.model.claims)
    @rule(index=INDEX)
    def cancel_a_waiting_claim(self, index: int) -> None:
        number = self.model.claims.pop(index % len(self.model.claims))
        self.claims[number].cancel()
        self.run_until_quiet()

    @precondition(lambda self: any(side.waiting for side in self.model.sides.values()))
    @rule(index=INDEX)
    def cancel_a_producer_that_waits_for_a_slot(self, index: int) -> None:
        waiting = [(side, item) for side in self.model.sides.values() for item in side.waiting]
        side, item = waiting[index % len(waiting)]
        side.waiting.remove(item)
        side.fates["written_off"] += 1
        self.producers[item.name].cancel()
        self.run_until_quiet()

    @rule(seconds=st.sampled_from([0.5, 1.0, 2.0]))
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds

    @precondition(lambda self: self.model.claims)
    @rule(side=SIDES, ttl=TTLS)
    def cancel_in_the_tick_of_the_grant(self, side: str, ttl: float | None) -> None:
        """If the put makes a pair, it goes to the first claim, which is cancelled before it runs: as if gone."""
        number = self.model.claims.pop(0)
        self.begin_put(side, ttl)
        self.loop.call_soon(self.claims[number].cancel)  # behind the put, in the same round
        self.run_until_quiet()

    @precondition(lambda self: self.model.claims and not any(side.waiting for side in self.model.sides.values()))
    @rule(side=SIDES, ttl=TTLS, seconds=st.sampled_from([1.0, 2.0, 60.0]))
    def time_passes_between_grant_and_resumption(self, side: str, ttl: float | None, seconds: float) -> None:
        before = set(self.model.held)
        self.model.reserved = True
        self.begin_put(side, ttl)
        self.model.reserved = False
        self.loop.call_soon(self.time_passes_by, seconds)  # behind the put, in the same round
        self.run_until_quiet()
        granted = {number: pair for number, pair in self.model.held.items() if number not in before}
        for number, pair in granted.items():
            if not all(item.fresh(self.model.now) for item in pair):
                self.take_back(number, pair)
                self.model.touch()
        self.model.refuse()

    def time_passes_by(self, seconds: float) -> None:
        self.model.now += seconds

    def take_back(self, number: int, pair: tuple[Item, Item]) -> None:
        del self.model.held[number]
        for side, item in zip(self.model.sides.values(), pair, strict=True):
            side.out -= 1
            side.stock.insert(0, item)
        self.model.claims.insert(0, number)

    @rule(side=SIDES)
    def end_a_side(self, side: Literal["t", "q"]) -> None:
        self.inventory.end_side(side)
        self.model.sides[side].ended = True
        self.model.touch()
        self.run_until_quiet()

    @precondition(lambda self: self.count > 15)  # late, or nothing else is seen
    @rule()
    def close(self) -> None:
        self.loop.run_until_complete(self.inventory.close())
        self.model.closed = True
        for side in self.model.sides.values():
            side.fates["written_off"] += len(side.stock)
            side.stock.clear()
        self.model.touch()
        self.run_until_quiet()

    # what must hold after each of them

    @invariant()
    def the_model_holds(self) -> None:
        depths = tuple(len(side.stock) for side in self.model.sides.values())
        assert self.inventory.depths == depths
        assert self.inventory.waiting == len(self.model.claims)
        assert self.inventory.reserved == 0
        assert {number: self.got[number] for number in self.model.held} == {
            number: (t.name, q.name) for number, (t, q) in self.model.held.items()
        }

    @invariant()
    def the_books_balance(self) -> None:
        for slots, side in zip(
            (self.inventory.t_slots, self.inventory.q_slots), self.model.sides.values(), strict=True
        ):
            fates = {"consumed": slots.consumed, "written_off": slots.written_off, "expired": slots.expired}
            assert fates == {name: side.fates[name] for name in fates}
            assert slots.produced == sum(fates.values()) + slots.held + slots.waiting
            assert (slots.held, slots.waiting) == (len(side.stock) + side.out, len(side.waiting))

    @invariant()
    def who_waits_in_vain_is_told(self) -> None:
        refused = {number for number, task in self.claims.items() if _was_refused(task)}
        assert refused == self.model.refused
        assert self.reports == []

    def teardown(self) -> None:
        tasks = [*self.producers.values(), *self.claims.values()]
        for task in tasks:
            task.cancel()
        self.run_until_quiet()
        assert all(task.done() for task in tasks)
        self.loop.run_until_complete(self.inventory.close())
        for slots in (self.inventory.t_slots, self.inventory.q_slots):
            assert slots.free == slots.cap
        for end in self.ends.values():
            end.cancel()
        self.loop.close()


def _was_refused(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and isinstance(task.exception(), NoMorePairs)


TestInventoryMachine = InventoryMachine.TestCase
TestInventoryMachine.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
