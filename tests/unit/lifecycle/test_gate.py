from __future__ import annotations

import asyncio

import pytest

from stagewire import Closed
from stagewire.lifecycle import ShutdownGate
from stagewire.testing import SweepRun, run_virtual, sweep_cancels


async def operate(gate: ShutdownGate, seconds: float) -> None:
    with gate.admit():
        await asyncio.sleep(seconds)


def test_sd2_operations_inside_are_counted() -> None:
    gate = ShutdownGate()
    with gate.admit():
        with gate.admit():
            assert gate.inside == 2
        assert gate.inside == 1
    assert gate.inside == 0
    with pytest.raises(ValueError, match="failed"), gate.admit():
        raise ValueError("failed")
    assert gate.inside == 0


def test_sd2_after_close_none_is_admitted() -> None:
    gate = ShutdownGate("session 7")
    gate.close()
    with pytest.raises(Closed, match="session 7 is closed"):
        gate.admit()
    assert gate.closed


def test_sd2_an_admission_asked_for_before_the_close_is_not_a_way_in() -> None:
    gate = ShutdownGate()
    admission = gate.admit()
    gate.close()
    with pytest.raises(Closed), admission:
        pytest.fail("entered a closed gate")
    assert gate.inside == 0


def test_sd2_quiesced_waits_for_those_inside() -> None:
    async def main() -> None:
        gate = ShutdownGate()
        inside = [asyncio.create_task(operate(gate, seconds)) for seconds in (3, 7)]
        await asyncio.sleep(0)
        gate.close()
        assert gate.inside == 2
        await gate.quiesced()
        assert asyncio.get_running_loop().time() == 7
        assert gate.inside == 0
        await asyncio.gather(*inside)

    run_virtual(main())


def test_sd2_quiescence_needs_the_close_and_then_holds_for_ever() -> None:
    async def main() -> None:
        gate = ShutdownGate()
        waiter = asyncio.create_task(gate.quiesced())
        await operate(gate, 1)
        await asyncio.sleep(0)
        assert not waiter.done(), "empty, but more may come"
        gate.close()
        gate.close()
        await waiter
        await gate.quiesced()

    run_virtual(main())


def test_sd2_a_cancel_at_any_tick_leaves_nobody_inside() -> None:
    async def scenario(gate: ShutdownGate) -> None:
        await asyncio.gather(operate(gate, 1), operate(gate, 2))

    async def check(gate: ShutdownGate, _run: SweepRun) -> None:
        assert gate.inside == 0
        gate.close()
        await gate.quiesced()

    assert sweep_cancels(ShutdownGate, scenario, check).hits
