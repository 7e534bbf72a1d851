"""The exact order of each worker's cycle, and what a cancel at each of its waits leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from stagewire.testing import run_virtual
from stagewire_csp import Capacity, Inventory, RoleFailed, RunSettings
from stagewire_csp.failures import FailureBook, FailurePolicy
from stagewire_csp.roles import Caller, Roles
from stagewire_csp.source import SourceEnded
from stagewire_csp.workers import Workers

if TYPE_CHECKING:
    from tests.unit.csp.conftest import Script

MakeScript = Callable[..., "Script"]
Settle = Callable[[], Coroutine[Any, Any, None]]


def make_workers(script: Script, capacity: Capacity | None = None, **settings: Any) -> Workers:
    capacity = capacity or Capacity(physical=1, t_slot=2, q_slot=2, q_pending=1)
    inventory = Inventory(capacity.t_slot, capacity.q_slot, clock=lambda: asyncio.get_running_loop().time())
    caller = Caller(FailureBook(FailurePolicy()))
    return Workers.build(inventory, Roles(script, script, script), caller, capacity, RunSettings(**settings))


def held(workers: Workers) -> dict[str, int]:
    inventory = workers.inventory
    return {
        "physical": workers.physical.held,
        "pending": workers.pending.held,
        "t_slot": inventory.t_slots.held,
        "q_slot": inventory.q_slots.held,
    }


def test_csp2_a_producer_holds_physical_only_while_it_produces_and_a_slot_only_afterwards(
    make_script: MakeScript,
) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script)
        seen: list[dict[str, int]] = []

        async def produce(_number: int) -> None:
            seen.append(held(workers))

        script.on_produce = produce
        await workers.make_t()
        assert seen == [{"physical": 1, "pending": 0, "t_slot": 0, "q_slot": 0}]
        assert held(workers) == {"physical": 0, "pending": 0, "t_slot": 1, "q_slot": 0}
        assert workers.inventory.depths == (1, 0)

    run_virtual(main())


def test_csp2_the_gate_comes_before_physical(make_script: MakeScript, settled: Settle) -> None:
    async def main() -> None:
        workers = make_workers(make_script())
        await workers.make_t()
        await workers.make_t()  # the stock takes every slot: the gate is shut
        task = asyncio.create_task(workers.make_t())
        await settled()
        assert workers.gate.t.waiting == 1
        assert held(workers)["physical"] == 0
        task.cancel()
        await settled()

    run_virtual(main())


def test_csp2_physical_is_released_before_the_wait_for_a_slot(make_script: MakeScript, settled: Settle) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script, Capacity(1, 1, 1, 1))
        script.on_produce = nothing
        await asyncio.gather(*[workers.inventory.t_slots.acquire() for _ in range(1)])  # somebody holds the slot
        task = asyncio.create_task(workers.make_t())
        await settled()
        assert (workers.inventory.t_slots.waiting, held(workers)["physical"]) == (1, 0)
        task.cancel()
        await settled()
        assert (workers.inventory.t_slots.waiting, workers.inventory.t_slots.written_off) == (0, 1)

    run_virtual(main())


def test_csp3_physical_is_not_held_while_the_answer_is_waited_for(make_script: MakeScript) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script)
        seen: dict[str, dict[str, int]] = {}

        async def send(_number: int) -> None:
            seen["send"] = held(workers)

        async def receive(_ticket: Any) -> None:
            seen["receive"] = held(workers)
            await asyncio.sleep(5)
            seen["answer"] = held(workers)

        script.on_send, script.on_receive = send, receive
        await workers.request_q()
        assert seen["send"] == {"physical": 1, "pending": 1, "t_slot": 0, "q_slot": 0}
        assert seen["receive"] == seen["answer"] == {"physical": 0, "pending": 1, "t_slot": 0, "q_slot": 0}
        assert held(workers) == {"physical": 0, "pending": 0, "t_slot": 0, "q_slot": 1}

    run_virtual(main())


def test_csp3_pending_comes_before_physical_and_is_held_until_the_q_is_in_stock(
    make_script: MakeScript, settled: Settle
) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script, Capacity(1, 1, 1, 1))
        await workers.physical.acquire()
        task = asyncio.create_task(workers.request_q())
        await settled()
        assert (workers.pending.held, workers.physical.waiting) == (1, 1)
        await workers.inventory.q_slots.acquire()  # no slot for the answer
        workers.physical.release()
        await asyncio.sleep(5)
        assert (workers.inventory.q_slots.waiting, workers.pending.held, workers.requests.answered) == (1, 1, 1)
        workers.inventory.q_slots.release()
        await task
        assert (workers.pending.held, workers.inventory.depths) == (0, (0, 1))

    run_virtual(main())


def test_csp4_a_consumer_holds_the_pair_and_then_physical(make_script: MakeScript, settled: Settle) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script)
        await workers.make_t()
        await workers.request_q()
        await workers.physical.acquire()
        task = asyncio.create_task(workers.consume_pair())
        await settled()
        assert (workers.inventory.depths, workers.physical.waiting) == ((0, 0), 1)
        workers.physical.release()
        await task
        assert script.pairs == [("t1", "q1")]
        assert not any(held(workers).values())

    run_virtual(main())


async def nothing(_number: int) -> None:
    return None


@pytest.mark.parametrize("role", ["produce", "send", "receive", "consume"])
@pytest.mark.parametrize("how", ["error", "cancel"])
def test_csp1_every_permit_and_slot_is_released_however_a_role_ends(
    role: str, how: str, make_script: MakeScript
) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script)
        cycle = {"produce": workers.make_t, "send": workers.request_q, "receive": workers.request_q}
        if role == "consume":
            await workers.make_t()
            await workers.request_q()

        async def fail(*_: Any) -> None:
            if how == "error":
                raise ValueError("no")
            await asyncio.sleep(60)

        setattr(script, f"on_{role}", fail)
        task = asyncio.create_task(cycle.get(role, workers.consume_pair)())
        await asyncio.sleep(10)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() is (how == "cancel")
        assert isinstance(None if how == "cancel" else task.exception(), RoleFailed | None)
        assert not any(held(workers).values())
        assert workers.requests.in_flight == 0
        if role == "receive":
            assert (workers.requests.failed, workers.requests.given_up) == ((1, 0) if how == "error" else (0, 1))

    run_virtual(main())


def test_csp_trap_a_worker_that_is_cancelled_around_the_put_leaks_nothing(
    make_script: MakeScript, settled: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleaning up under ``except Exception`` misses a cancel: were a put to suspend, the slot would still come back."""

    async def main() -> None:
        workers = make_workers(make_script())

        async def slow_put(_envelope: Any) -> None:
            await asyncio.sleep(60)

        monkeypatch.setattr(workers.inventory, "put_t", slow_put)
        task = asyncio.create_task(workers.make_t())
        await asyncio.sleep(1)
        assert held(workers)["t_slot"] == 1
        task.cancel()
        await settled()
        assert held(workers)["t_slot"] == 0
        assert workers.inventory.t_slots.written_off == 1

    run_virtual(main())


def test_csp3_an_answer_that_takes_too_long_is_a_failure(make_script: MakeScript) -> None:
    async def main() -> None:
        workers = make_workers(make_script(), reply_timeout=0.5)
        with pytest.raises(RoleFailed, match=r"receive failed: it took longer than 0\.5 s"):
            await workers.request_q()
        assert (workers.requests.failed, workers.pending.held) == (1, 0)

    run_virtual(main())


def test_a_cancel_from_inside_a_role_is_its_failure_and_not_the_workers_end(make_script: MakeScript) -> None:
    """A role may await a task that something else cancelled: nobody asked the worker to stop."""

    async def main() -> None:
        script = make_script()
        workers = make_workers(script)

        async def await_a_cancelled_task(_number: int) -> None:
            task = asyncio.create_task(asyncio.sleep(60))
            task.cancel()
            await task

        script.on_produce = await_a_cancelled_task
        with pytest.raises(RoleFailed, match="CancelledError"):
            await workers.make_t()
        assert not any(held(workers).values())

    run_virtual(main())


@pytest.mark.parametrize("role", ["produce", "send"])
def test_stop_async_iteration_from_a_source_is_its_end(role: str, make_script: MakeScript) -> None:
    async def main() -> None:
        workers = make_workers(make_script(count=0))
        with pytest.raises(SourceEnded):
            await (workers.make_t() if role == "produce" else workers.request_q())
        assert not any(held(workers).values())

    run_virtual(main())


@pytest.mark.parametrize("role", ["receive", "consume"])
def test_stop_async_iteration_from_elsewhere_is_a_failure(role: str, make_script: MakeScript) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script)
        if role == "consume":
            await workers.make_t()
            await workers.request_q()

        async def end(*_: Any) -> None:
            raise StopAsyncIteration

        setattr(script, f"on_{role}", end)
        with pytest.raises(RoleFailed, match=role):
            await (workers.consume_pair() if role == "consume" else workers.request_q())

    run_virtual(main())


def test_nothing_is_begun_once_a_source_has_ended(make_script: MakeScript) -> None:
    async def main() -> None:
        script = make_script()
        workers = make_workers(script)
        workers.t.end()
        with pytest.raises(SourceEnded):
            await workers.make_t()
        assert script.made == 0
        assert not any(held(workers).values())

    run_virtual(main())
