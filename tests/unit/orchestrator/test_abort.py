"""``abort`` is acknowledged after everything was let go of, and the id is usable at once (OR-12)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stagewire import Closed, StillHeld
from stagewire_orchestrator import Limits, OrchOutput, RequestRefused, Terminal
from stagewire_orchestrator.testing import FullClient

Play = Callable[..., None]


def test_or12_an_abort_ends_the_request_in_one_cancel(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        assert await world.orchestrator.abort("r")
        output = await world.next()
        assert output == OrchOutput("r", None, finished=True, has_data=False, cancelled=True)
        assert output.terminal is Terminal.CANCEL
        await world.silent()
        assert not world.tables()

    play(story)


def test_or12_the_acknowledgement_comes_after_every_stage_has_let_go(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r", "x", True)
        await world.settle()
        for stage in world.stages:
            stage.gate.clear()
        aborting = asyncio.create_task(world.orchestrator.abort("r"))
        await asyncio.sleep(1.0)
        assert ("abort", "r") in world.stages[0].calls  # ended there, but its chunks may still be on an edge
        assert ("abort", "r") in world.stages[1].calls
        world.stages[1].gate.set()
        await world.settle()
        assert not aborting.done()
        with pytest.raises(RequestRefused, match="in use"):
            await world.orchestrator.add_request("r", 2)
        world.stages[0].gate.set()
        assert await aborting
        await world.orchestrator.add_request("r", 2)

    play_full(story)


def test_or12_the_id_is_usable_at_once_and_nothing_of_the_earlier_use_shows(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r", "old", True)
        await world.settle()
        assert await world.orchestrator.abort("r")
        await world.add("r")
        world.stages[1].put("r", "late", True)  # the new use has not come to stage 1
        await world.settle()
        assert world.orchestrator.dropped_outputs == 1
        outputs = [await world.next(), *await world.finish("r")]
        assert outputs[0].cancelled
        assert [output.data for output in outputs[1:]] == ["x", "x", "x"]

    play(story)


def test_or12_with_wire_ids_late_outputs_never_reach_a_later_use(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        assert await world.orchestrator.abort("r")
        await world.add("r")
        assert [request for request, _ in world.stages[0].submitted] == ["r#1", "r#2"]
        world.stages[0].put("r#1", "late", True)
        await world.settle()
        assert world.orchestrator.dropped_outputs == 1
        world.stages[0].put("r#2", "new")
        outputs = [await world.next(), await world.next()]
        assert [(output.request_id, output.data) for output in outputs] == [("r", None), ("r", "new")]

    play(story, wire_id=lambda request, number: f"{request}#{number}")


def test_or12_a_live_duplicate_is_refused_and_the_live_request_goes_on(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        with pytest.raises(RequestRefused, match="'r' is in use"):
            await world.orchestrator.add_request("r", 2)
        assert len(world.stages[0].submitted) == 1
        assert sum(output.finished for output in await world.finish("r")) == 1
        await world.add("r")
        assert sum(output.finished for output in await world.finish("r")) == 1

    play(story)


def test_or12_the_id_is_usable_as_soon_as_the_terminal_was_taken(play: Play) -> None:
    async def story(world: Any) -> None:
        for _ in range(3):
            await world.orchestrator.add_request("r", 1)
            await world.settle()
            await world.finish("r")

    play(story)


def test_or12_an_abort_while_waiting_for_a_replica_stays_effective(play: Play) -> None:
    async def story(world: Any) -> None:
        gate = asyncio.Event()
        world.stages[0].on_submit = lambda *_: gate.wait()
        await world.add("first", "waiting")
        assert [request for request, _ in world.stages[0].submitted] == ["first"]
        assert await world.orchestrator.abort("waiting")
        gate.set()
        await world.settle()
        assert [request for request, _ in world.stages[0].submitted] == ["first"]
        assert (await world.next()).request_id == "waiting"
        assert (await world.finish("first"))[-1].terminal is Terminal.END

    play(story)


def test_or12_an_abort_interrupts_a_submit_that_is_in_hand(play: Play) -> None:
    async def story(world: Any) -> None:
        unwound = asyncio.Event()

        async def block(request_id: str, _payload: Any) -> None:
            if request_id == "stuck":
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0.5)
                    unwound.set()

        world.stages[0].on_submit = block
        await world.add("stuck", "next")
        assert await world.orchestrator.abort("stuck")
        assert unwound.is_set()
        assert [request for request, _ in world.stages[0].submitted] == ["stuck", "next"]
        assert (await world.next()).cancelled
        assert (await world.finish("next"))[-1].terminal is Terminal.END

    play(story)


def test_or12_a_submit_that_swallows_its_interruption_does_not_stop_the_worker(play: Play) -> None:
    async def story(world: Any) -> None:
        async def stubborn(request_id: str, _payload: Any) -> None:
            if request_id == "stuck":
                try:
                    await asyncio.sleep(100)
                except asyncio.CancelledError:
                    return

        world.stages[0].on_submit = stubborn
        await world.add("stuck")
        assert await world.orchestrator.abort("stuck")
        await world.next()
        await world.add("next")
        assert (await world.finish("next"))[-1].terminal is Terminal.END

    play(story)


def test_or12_an_abort_while_the_payload_is_made(play: Play) -> None:
    cancelled: list[bool] = []

    async def make() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        return "never"

    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r", "x", True)
        await world.settle()
        assert await world.orchestrator.abort("r")
        assert cancelled == [True]
        assert not world.stages[1].submitted

    play(story, forward=lambda *_: make())


def test_or12_an_abort_right_behind_the_add_is_not_lost(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.orchestrator.add_request("r", 1)
        assert await world.orchestrator.abort("r")
        assert (await world.next()).cancelled

    play(story)


def test_or12_aborting_what_there_is_not_says_so(play: Play) -> None:
    async def story(world: Any) -> None:
        assert not await world.orchestrator.abort("nobody")
        await world.add("r")
        await world.finish("r")
        assert not await world.orchestrator.abort("r")
        await world.silent()

    play(story)


def test_or12_two_aborts_of_one_request_are_both_acknowledged(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].gate.clear()
        aborting = [asyncio.create_task(world.orchestrator.abort("r")) for _ in range(3)]
        await world.settle()
        world.stages[0].gate.set()
        assert await asyncio.gather(*aborting) == [True, True, True]
        assert (await world.next()).cancelled
        await world.silent()

    play_full(story)


def test_or12_cancelling_the_call_does_not_take_the_abort_back(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].gate.clear()
        aborting = asyncio.create_task(world.orchestrator.abort("r"))
        await world.settle()
        aborting.cancel()
        await asyncio.wait([aborting])
        world.stages[0].gate.set()
        assert (await world.next()).cancelled
        assert not world.tables()

    play_full(story)


def test_or12_aborts_cost_no_slots_although_nobody_reads_their_terminals(play: Play) -> None:
    async def story(world: Any) -> None:
        for number in range(50):
            await world.add(f"r{number}")
            assert await world.orchestrator.abort(f"r{number}")
        assert world.tables() == {"outputs": 50}

    play(story, limits=Limits(requests=2, when_full="refuse"))


def test_or12_an_abort_drops_what_still_waits_for_the_client(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("kept", "gone")
        for number in range(3):
            world.stages[0].put("kept", number)
            world.stages[0].put("gone", number)
        await world.settle()
        assert await world.orchestrator.abort("gone")
        outputs = [await world.next() for _ in range(4)]
        assert [(output.request_id, output.data) for output in outputs] == [
            ("kept", 0), ("kept", 1), ("kept", 2), ("gone", None),
        ]  # fmt: skip
        assert world.tables().keys() == {"ledger", "ids", "slots", "load"}

    play(story)


def test_or12_a_stage_that_does_not_let_go_is_reported_and_does_not_hold_the_terminal_for_ever(
    play_full: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].gate.clear()
        began = asyncio.get_running_loop().time()
        assert await world.orchestrator.abort("r")
        assert asyncio.get_running_loop().time() - began == pytest.approx(3.0)
        assert (await world.next()).cancelled

    play_full(story, limits=Limits(release_timeout=3.0))
    assert "request.release_slow" in capsys.readouterr().err


def test_or12_a_request_that_waits_to_be_admitted_can_be_aborted(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("first")
        waiting = asyncio.create_task(world.orchestrator.add_request("second", 2))
        third = asyncio.create_task(world.orchestrator.add_request("third", 3))
        await world.settle()
        assert await world.orchestrator.abort("second")
        with pytest.raises(RequestRefused, match="aborted while it waited"):
            await waiting
        assert not third.done()
        await world.finish("first")
        await third
        await world.settle()
        assert [request for request, _ in world.stages[0].submitted] == ["first", "third"]

    play(story, limits=Limits(requests=1))


def test_or12_a_failed_request_is_let_go_of_before_its_terminal_is_told(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].gate.clear()
        world.stages[0].put("r", error=ValueError("boom"))
        await world.silent()
        world.stages[0].gate.set()
        assert (await world.next()).terminal is Terminal.ERROR
        await world.add("r")

    play_full(story)


def test_or12_an_end_with_stages_still_at_work_lets_those_go(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r", "x", True)
        output = await world.next()
        assert (output.data, output.terminal) == ("x", Terminal.END)
        assert all(("abort", "r") not in stage.calls for stage in world.stages)  # nothing else was ever submitted

    play_full(story, finals={0})


def test_or8_shutdown_ends_what_is_in_flight_in_cancel_and_leaves_outputs_to_be_read(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("a", "b", "aborting")
        world.stages[0].put("a", "x")
        await world.settle()
        world.stages[0].gate.clear()
        aborting = asyncio.create_task(world.orchestrator.abort("aborting"))
        await world.settle()
        await world.orchestrator.add_request("late", 4)
        waiting = asyncio.create_task(world.orchestrator.add_request("outside", 5))
        await world.orchestrator.shutdown()
        assert await aborting
        outputs = [await world.orchestrator.next_output(1) for _ in range(5)]
        assert outputs[0].data == "x"
        assert {(output.request_id, output.terminal) for output in outputs[1:]} == {
            (request, Terminal.CANCEL) for request in ("a", "b", "aborting", "late")
        }
        for refused in (waiting, world.orchestrator.add_request("r", 1), world.orchestrator.next_output(1)):
            with pytest.raises(Closed):
                await refused
        assert not await world.orchestrator.abort("a")
        assert not world.tables()

    play_full(story, limits=Limits(requests=4))


def test_or8_a_reader_of_outputs_is_woken_by_the_shutdown(play: Play) -> None:
    async def story(world: Any) -> None:
        readers = [asyncio.create_task(world.orchestrator.next_output()) for _ in range(2)]
        await world.settle()
        await world.orchestrator.shutdown()
        results = await asyncio.gather(*readers, return_exceptions=True)
        assert all(isinstance(result, Closed) for result in results)

    play(story)


def test_or8_cancelling_a_shutdown_does_not_stop_it(play: Play) -> None:
    may_close = asyncio.Event()

    class Slow(FullClient):
        async def close(self) -> None:
            await may_close.wait()
            await super().close()

    async def story(world: Any) -> None:
        await world.add("r")
        closing = asyncio.create_task(world.orchestrator.shutdown())
        await world.settle()
        closing.cancel()
        await asyncio.wait([closing])
        may_close.set()
        await world.settle()
        assert all(stage.calls[-1] == ("close", "") for stage in world.stages)
        assert (await world.next()).cancelled

    play(story, client=Slow)


def test_or8_a_client_that_swallows_cancels_is_cancelled_again(play: Play) -> None:
    class Stubborn(FullClient):
        swallows = 3

        async def get_output(self) -> Any:
            while True:
                try:
                    return await super().get_output()
                except asyncio.CancelledError:
                    self.swallows -= 1
                    if self.swallows < 0:
                        raise

    async def story(world: Any) -> None:
        await world.add("r")
        await world.orchestrator.shutdown()
        assert all(stage.swallows < 0 for stage in world.stages)
        assert world.stages[0].calls[-1] == ("close", "")

    play(story, client=Stubborn)


def test_or8_a_client_that_never_ends_is_named_and_the_rest_is_closed(play: Play) -> None:
    class Immortal(FullClient):
        mortal = False

        async def get_output(self) -> Any:
            while True:
                try:
                    return await super().get_output()
                except asyncio.CancelledError:
                    if self.mortal:
                        raise

    async def story(world: Any) -> None:
        await world.add("r")
        with pytest.raises(StillHeld, match="reader 0/0"):
            await world.orchestrator.shutdown()
        assert (await world.next()).cancelled
        assert world.stages[0].calls[-1] == ("close", "")
        for stage in world.stages:
            stage.mortal = True
        await world.orchestrator.shutdown()

    play(story, client=Immortal, limits=Limits(release_timeout=0.5))
