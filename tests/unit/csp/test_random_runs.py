"""Whole runs with random latencies, failures, expiry, cancels, stops; the books are checked at every tick (CSP-14)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stagewire import LoggingOptions, make_logger
from stagewire.testing import VirtualLoop, run_virtual
from stagewire_csp import Capacity, CspReport, CspRuntime, FailurePolicy, RunSettings

SECONDS = st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0, 3.0])
FAILS = -1.0
STEP = st.one_of(SECONDS, st.just(FAILS))
CAP = st.integers(1, 3)
TTL = st.sampled_from([None, 0.3, 1.0, 2.0])


@dataclass
class Plan:
    """What happens in a run: how long each call takes (negative: it fails), who is cancelled when, when it stops."""

    produce: list[float]
    send: list[float]
    receive: list[float]
    consume: list[float]
    capacity: tuple[int, int, int, int]
    t_ttl: float | None
    q_ttl: float | None
    cancels: list[tuple[float, str]] = field(default_factory=list)
    stop: float | None = None


PLANS = st.builds(
    Plan,
    produce=st.lists(STEP, max_size=12),
    send=st.lists(STEP, max_size=12),
    receive=st.lists(STEP, min_size=12, max_size=12),
    consume=st.lists(STEP, min_size=1, max_size=6),
    capacity=st.tuples(CAP, CAP, CAP, CAP),
    t_ttl=TTL,
    q_ttl=TTL,
    cancels=st.lists(
        st.tuples(st.floats(0, 5), st.sampled_from(["S0", "S1", "P0", "P1", "C0", "C1", "run"])), max_size=4
    ),
    stop=st.none() | st.floats(0, 5),
)


class Actor:
    """The three roles, by plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.calls = {"produce": 0, "send": 0, "consume": 0}
        self.produced = 0
        self.answered = 0

    async def produce(self) -> str:
        number = self._next("produce", len(self.plan.produce))
        await act(self.plan.produce[number])
        self.produced += 1
        return f"t{number}"

    async def send(self) -> int:
        number = self._next("send", len(self.plan.send))
        await act(self.plan.send[number])
        return number

    async def receive(self, ticket: int) -> str:
        await act(self.plan.receive[ticket])
        self.answered += 1
        return f"q{ticket}"

    async def consume(self, _t: str, _q: str) -> None:
        number = self.calls["consume"] = self.calls["consume"] + 1
        await act(self.plan.consume[number % len(self.plan.consume)])

    def _next(self, role: str, count: int) -> int:
        number = self.calls[role]
        if number == count:
            raise StopAsyncIteration
        self.calls[role] = number + 1
        return number


async def act(seconds: float) -> None:
    if seconds == FAILS:
        await asyncio.sleep(0.05)
        raise ValueError("as planned")
    if seconds:
        await asyncio.sleep(seconds)


def check(runtime: CspRuntime, actor: Actor) -> None:
    state = runtime.snapshot()
    assert state.t.balanced
    assert state.q.balanced
    assert (state.t.produced, state.q.produced) == (actor.produced, actor.answered)
    for permits in (state.t.slots, state.q.slots, state.physical, state.q_pending):
        assert 0 <= permits.held <= permits.cap
    assert state.requests.in_flight >= 0


async def run(plan: Plan) -> CspReport:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    actor = Actor(plan)
    runtime = CspRuntime(
        actor,
        actor,
        actor,
        capacity=Capacity(*plan.capacity),
        settings=RunSettings(
            t_ttl=plan.t_ttl,
            q_ttl=plan.q_ttl,
            deadline=4,
            reply_timeout=2,
            failures=FailurePolicy(backoff=0.1, longest=0.4, give_up=10),
        ),
        clock=loop.time,
        log=make_logger(LoggingOptions(level="error"), pipeline="random"),
    )
    loop.on_tick = lambda _number: check(runtime, actor)
    running = loop.create_task(runtime.run(), name="run")
    for when, name in plan.cancels:
        loop.call_at(when, cancel, name)
    if plan.stop is not None:
        loop.call_at(plan.stop, runtime.stop)
    with suppress(asyncio.CancelledError):
        await running
    await runtime.close()
    loop.on_tick = None
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return runtime.report()


def cancel(name: str) -> Any:
    for task in asyncio.all_tasks():
        if task.get_name() == name:
            task.cancel()


@settings(max_examples=150, deadline=None)
@given(PLANS)
def test_csp14_csp15_the_books_balance_through_any_run(plan: Plan) -> None:
    # Killing every worker of a kind from outside leaves nobody to do its part: such a run is stopped in the end.
    if plan.stop is None and plan.cancels:
        plan.stop = 30.0
    report = run_virtual(run(plan))
    assert report.balanced, report.rows()
    assert report.state.claims == 0
    requests = report.state.requests
    assert requests.sent == requests.answered + requests.failed + requests.given_up
