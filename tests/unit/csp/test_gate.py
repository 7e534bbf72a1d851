"""The admission gate: water marks, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from stagewire.testing import run_virtual
from stagewire_csp import AdmissionGate, WaterMarks

if TYPE_CHECKING:
    from tests.unit.csp.conftest import Store

MakeStore = Callable[..., "Store"]
Settle = Callable[[], Coroutine[Any, Any, None]]
Suspends = Callable[[Coroutine[Any, Any, Any]], bool]

WIDE = WaterMarks(0, 100)


def make_gate(store: Store, low: int, high: int) -> AdmissionGate:
    return AdmissionGate(store.inventory, t=WaterMarks(low, high), q=WIDE)


def test_csp8_production_pauses_at_the_high_mark_and_goes_on_at_the_low_one(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        gate = make_gate(store, 1, 3)
        opened = []
        for name in "abc":
            opened.append(gate.t.open)
            await store.put_t(name)
        assert (opened, gate.t.open) == ([True, True, True], False)
        for name in "xy":
            await store.put_q(name)
        claims = []
        for _ in range(2):
            claims.append(await store.claim())
            opened.append(gate.t.open)
        assert opened[-2:] == [False, True]  # at 2, above the low mark, and at 1
        assert gate.q.open
        for claim in claims:
            await claim.finish()

    run_virtual(main())


def test_csp8_the_gate_wakes_all_who_wait(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        gate = make_gate(store, 0, 1)
        await store.put_t("a")
        waiting = [asyncio.create_task(gate.t.admit()) for _ in range(3)]
        await settled()
        assert (gate.t.waiting, [task.done() for task in waiting]) == (3, [False] * 3)
        await store.put_q("x")
        claim = await store.claim()
        assert [task.done() for task in waiting] == [True] * 3
        assert gate.t.waiting == 0
        await claim.finish()

    run_virtual(main())


def test_csp8_who_was_woken_waits_again_if_the_gate_has_shut_meanwhile(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        gate = make_gate(store, 0, 1)
        await store.put_t("a")
        waiting = asyncio.create_task(gate.t.admit())
        await settled()
        await store.put_q("x")
        async with store.inventory.claim_pair():
            assert gate.t.open
            await store.put_t("b")  # before the woken one has run
            await settled()
            assert not waiting.done()
        waiting.cancel()
        await settled()
        assert gate.t.waiting == 0

    run_virtual(main())


def test_csp8_a_cancelled_wait_at_the_gate_leaves_nothing(make_store: MakeStore, settled: Settle) -> None:
    async def main() -> None:
        store = make_store()
        gate = make_gate(store, 0, 1)
        await store.put_t("a")
        tasks = [asyncio.create_task(gate.t.admit()) for _ in range(2)]
        await settled()
        await store.inventory.close()  # opens it
        tasks[0].cancel()
        await settled()
        assert (tasks[0].cancelled(), tasks[1].done(), gate.t.waiting) == (True, True, 0)

    run_virtual(main())


def test_csp_trap_stock_that_expires_wakes_the_gate_too(make_store: MakeStore, settled: Settle) -> None:
    """The depth has one owner: whatever lowers it drives the gate, also a put on the other side."""

    async def main() -> None:
        store = make_store()
        gate = make_gate(store, 0, 2)
        await store.put_t("a", ttl=5)
        await store.put_t("b", ttl=5)
        waiting = asyncio.create_task(gate.t.admit())
        await asyncio.sleep(5)
        await settled()
        assert not waiting.done()
        await store.put_q("x")
        await settled()
        assert waiting.done()
        assert store.inventory.depths == (0, 1)

    run_virtual(main())


def test_csp8_an_open_gate_never_suspends(make_store: MakeStore, does_suspend: Suspends) -> None:
    store = make_store()
    gate = make_gate(store, 0, 1)
    assert not does_suspend(gate.t.admit())


def test_csp8_a_gate_that_comes_late_sees_the_depth(make_store: MakeStore) -> None:
    async def main() -> None:
        store = make_store()
        for name in "abc":
            await store.put_t(name)
        assert not make_gate(store, 1, 3).t.open

    run_virtual(main())


@pytest.mark.parametrize(("low", "high"), [(-1, 3), (3, 3), (4, 3), (0, 0)])
def test_csp8_marks_that_make_no_sense_are_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="0 <= low < high"):
        WaterMarks(low, high)


@pytest.mark.parametrize(("slots", "marks"), [(1, (0, 1)), (8, (4, 8)), (9, (4, 9))])
def test_csp8_by_default_the_gate_shuts_when_stock_takes_every_slot(slots: int, marks: tuple[int, int]) -> None:
    made = WaterMarks.for_slots(slots)
    assert (made.low, made.high) == marks
