"""One cancel at every tick of a small run, in every worker; the books are checked at every tick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from stagewire.testing import SweepRun, VirtualLoop, sweep_cancels
from stagewire_csp import Capacity, CspReport, CspRuntime, FailurePolicy, RunSettings

if TYPE_CHECKING:
    from tests.unit.csp.conftest import LogBook, Script

MakeScript = Callable[..., "Script"]

VICTIMS = [None, "S0", "S1", "P0", "P1", "C0", "C1"]
"""``None`` is the run itself; a third worker of a kind would show what the second does."""


class World:
    """A small run with everything in it: scarce slots, expiry, failures, late answers, and a stop at the end of T."""

    def __init__(self, make_script: MakeScript, book: LogBook) -> None:
        self.script = script = make_script(count=6)
        script.on_produce = self.produce
        script.on_receive = self.receive
        script.on_consume = self.consume
        loop = asyncio.get_running_loop()
        self.runtime = CspRuntime(
            script,
            script,
            script,
            capacity=Capacity(physical=1, t_slot=1, q_slot=2, q_pending=2),
            settings=RunSettings(
                t_ttl=0.8, reply_timeout=1, deadline=10, failures=FailurePolicy(backoff=0.1, longest=0.1)
            ),
            clock=loop.time,
            wall=loop.time,
            log=book.log,
        )

    async def produce(self, number: int) -> None:
        await asyncio.sleep(0.1)
        if number == 2:
            raise ValueError("the second is bad")

    async def receive(self, ticket: int) -> None:
        await asyncio.sleep({1: 0.9, 2: 60}.get(ticket, 0.2))

    async def consume(self, t: Any, _q: Any) -> None:
        await asyncio.sleep(0.1)
        if t == "t5":
            raise ValueError("the fifth is bad")

    def check(self) -> None:
        """Conservation, now (CSP-14)."""
        state = self.runtime.snapshot()
        assert state.t.balanced
        assert state.q.balanced
        assert (state.t.produced, state.q.produced) == (self.script.produced, self.script.answered)
        assert state.requests.answered == self.script.answered
        assert state.pairs == len(self.script.pairs) or state.t.slots.held
        for side in (state.t, state.q):
            assert side.depth + state.reserved <= side.slots.held <= side.slots.cap

    async def run(self) -> CspReport:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        inject = loop.on_tick
        assert inject is not None

        def on_tick(number: int) -> None:
            self.check()
            inject(number)

        loop.on_tick = on_tick
        return await self.runtime.run()


def find(name: str | None, world: World) -> asyncio.Task[Any] | None:
    del world
    name = name or "scenario"
    return next((task for task in asyncio.all_tasks() if task.get_name() == name), None)


async def accounted(world: World, run: SweepRun) -> None:
    world.check()
    if not isinstance(run.outcome, CspReport):
        assert isinstance(run.outcome, asyncio.CancelledError), run.outcome
        await world.runtime.close()
    report = world.runtime.report()
    assert report.balanced, report.rows()
    assert report.state.claims == 0
    if run.tick is None:
        assert report.state.failures == {"produce": 1, "receive": 1, "consume": 1}
        assert (report.state.pairs, report.state.t.expired, report.state.requests.given_up) == (2, 2, 1)


@pytest.mark.parametrize("victim", VICTIMS, ids=lambda name: name or "run")
def test_csp_trap_one_cancel_at_every_tick_of_every_worker(
    victim: str | None, make_script: MakeScript, book: LogBook
) -> None:
    result = sweep_cancels(partial(World, make_script, book), World.run, accounted, victim=partial(find, victim))

    assert result.ticks > 30
    assert result.hits > 0


def test_csp1_csp14_two_cancels_in_a_row_at_every_tick_of_the_run(make_script: MakeScript, book: LogBook) -> None:
    """Cleaning up stands a second cancel."""
    sweep_cancels(partial(World, make_script, book), World.run, accounted, cancels=2)
