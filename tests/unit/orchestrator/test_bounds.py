"""Bounds everywhere (OR-16): requests in flight, outputs and bytes per request, and what happens at each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stagewire.testing import run_virtual
from stagewire_orchestrator import Clocks, Limits, OrchOutput, RequestRefused, Terminal
from stagewire_orchestrator.door import Door
from stagewire_orchestrator.outbox import Lane, Outbox
from stagewire_orchestrator.testing import take_all

Play = Callable[..., None]


def test_or16_a_full_orchestrator_makes_add_request_wait_in_order(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("a", "b")
        waiting = {each: asyncio.create_task(world.orchestrator.add_request(each, 0)) for each in "cde"}
        await asyncio.sleep(100)
        assert not any(task.done() for task in waiting.values())
        assert world.tables()["waiting"] == 3
        await world.finish("b")
        await world.settle()
        assert [each for each, task in waiting.items() if task.done()] == ["c"]
        await world.finish("a")
        await world.settle()
        assert [each for each, task in waiting.items() if task.done()] == ["c", "d"]
        await world.finish("c")
        await asyncio.gather(*waiting.values())
        await world.settle()
        assert [request for request, _ in world.stages[0].submitted] == list("abcde")

    play(story, limits=Limits(requests=2))


def test_or16_a_full_orchestrator_may_refuse_instead(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("a")
        with pytest.raises(RequestRefused, match="1 requests are in flight"):
            await world.orchestrator.add_request("b", 0)
        await world.finish("a")
        await world.add("b")

    play(story, limits=Limits(requests=1, when_full="refuse"))


def test_or16_a_request_is_in_flight_until_its_last_output_was_taken(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("a")
        for stage in world.stages:
            stage.put("a", "x", True)
            await world.settle()
        with pytest.raises(RequestRefused):
            await world.orchestrator.add_request("b", 0)
        assert (await world.until_terminal("a"))[-1].finished
        await world.add("b")

    play(story, limits=Limits(requests=1, when_full="refuse"))


@pytest.mark.parametrize("granted", [False, True])
def test_or16_cancelling_a_wait_takes_no_slot(granted: bool) -> None:
    async def main() -> None:
        door = Door(1, lambda request, _number: request)
        await door.enter("a")
        first, second = (asyncio.create_task(door.enter(each)) for each in "bc")
        await asyncio.sleep(0)
        if granted:
            door.free()  # the slot is set aside for b, which does not run any more
        first.cancel()
        await asyncio.wait([first])
        if not granted:
            door.free()
        assert await second == "c"
        assert (door.slots_taken, door.waiting) == (1, 0)

    run_virtual(main())


@pytest.mark.parametrize("granted", [False, True])
def test_or12_a_wait_that_is_aborted_gives_its_slot_to_the_next(granted: bool) -> None:
    async def main() -> None:
        door = Door(1, lambda request, _number: request)
        await door.enter("a")
        first, second = (asyncio.create_task(door.enter(each)) for each in "bc")
        await asyncio.sleep(0)
        if granted:
            door.free()
        assert door.abort_waiting("b")
        with pytest.raises(RequestRefused, match="aborted while it waited"):
            await first
        if not granted:
            door.free()
        assert await second == "c"
        assert not door.abort_waiting("b")

    run_virtual(main())


def test_or16_a_newcomer_does_not_overtake_those_who_wait(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("a")
        waiting = asyncio.create_task(world.orchestrator.add_request("b", 0))
        await world.settle()
        assert await world.orchestrator.abort("a")  # the slot is set aside for b
        with pytest.raises(RequestRefused, match="in use"):
            await world.orchestrator.add_request("b", 0)
        newcomer = asyncio.create_task(world.orchestrator.add_request("c", 0))
        await waiting
        await asyncio.sleep(1)
        assert not newcomer.done()
        await world.finish("b")
        await newcomer

    play(story, limits=Limits(requests=1))


def test_or17_the_queued_clock_runs_out_while_waiting_to_be_admitted(play: Play) -> None:
    async def story(world: Any) -> None:
        world.stages[0].on_submit = None
        await world.add("a")
        with pytest.raises(RequestRefused, match=r"waited 5 s"):
            await world.orchestrator.add_request("b", 0)
        await world.finish("a")
        await world.add("b")

    play(story, limits=Limits(requests=1), clocks=Clocks(queued=5))


def test_or16_a_slow_client_blocks_the_reading_of_a_plain_stage(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("slow", "other")
        for number in range(3):
            world.stages[0].put("slow", number)
            await world.settle()
        world.stages[0].put("slow", 3)
        world.stages[0].put("other", "behind it")
        await world.settle()
        assert world.tables()["outputs"] == 3  # not read: a plain client can only be held back as a whole
        world.stages[1].put("nobody")
        await world.settle()
        assert world.orchestrator.dropped_outputs == 1  # the other stages go on
        assert [(await world.next()).data for _ in range(5)] == [0, 1, 2, 3, "behind it"]
        assert world.tables().keys() == {"ledger", "ids", "slots", "load"}

    play(story, limits=Limits(queued_outputs=3))


@pytest.mark.parametrize("end", ["abort", "fail"])
def test_or16_a_held_stage_is_read_again_when_the_slow_request_ends(play: Play, end: str) -> None:
    async def story(world: Any) -> None:
        await world.add("slow", "other")
        world.stages[0].put("slow", 0)
        await world.settle()
        if end == "abort":
            assert await world.orchestrator.abort("slow")
        else:
            world.stages[1].die(OSError())
            await world.settle()
            assert await world.orchestrator.abort("slow")
        world.stages[0].put("other", "x")
        outputs = await take_all(world.orchestrator)
        assert ("other", "x") in [(output.request_id, output.data) for output in outputs]

    play(story, limits=Limits(queued_outputs=1))


def test_or16_bytes_count_as_well_as_outputs(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r", b"x" * 2_000)
        await world.settle()
        world.stages[0].put("r", b"y")
        await world.settle()
        assert world.tables()["outputs"] == 1
        assert len((await world.next()).data) == 2_000
        assert (await world.next()).data == b"y"

    play(story, limits=Limits(queued_bytes=1_000))


def test_or16_a_client_with_credit_is_told_of_every_output_that_is_taken(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        for number in range(5):
            world.stages[0].put("r", number)
        await world.settle()
        assert world.tables()["outputs"] == 5  # it holds itself back, and is not held
        assert world.stages[0].credits["r"] == 0
        await world.next()
        await world.next()
        assert world.stages[0].credits["r"] == 2

    play_full(story, limits=Limits(queued_outputs=1))


def test_or16_outputs_that_only_go_on_are_credited_at_once(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r", 1)
        world.stages[0].put("r", 2)
        world.stages[0].put("r", finished=True, has_data=False)
        await world.settle()
        assert world.stages[0].credits["r"] == 2

    play_full(story, finals={2})


def test_or16_a_slow_client_may_lose_outputs_but_never_the_terminal(play_full: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        for number in range(10):
            world.stages[0].put("r", number)
        world.stages[0].put("r", "last of stage 0", True)
        await world.settle()
        world.stages[1].put("r", "x", True)
        await world.settle()
        world.stages[2].put("r", "the end", True)
        outputs = await take_all(world.orchestrator)
        assert [output.data for output in outputs] == [0, 1, "the end"]
        assert outputs[-1].terminal is Terminal.END
        assert world.orchestrator.stats()["requests"]["dropped_for_client"] == 10
        assert world.stages[0].credits["r"] == 11  # it must not wait for a client that does not take
        assert world.stages[1].submitted[0][1][-1] == "last of stage 0"  # the stages lose nothing

    play_full(story, limits=Limits(queued_outputs=2, slow_client="drop"))


def test_or16_a_slow_client_may_have_its_request_cancelled(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("slow", "other")
        for number in range(3):
            world.stages[0].put("slow", number)
        world.stages[0].put("other", "x")
        await world.settle()
        outputs = await take_all(world.orchestrator)
        slow = [output for output in outputs if output.request_id == "slow"]
        assert [output.terminal for output in slow] == [Terminal.CANCEL]
        assert slow[0].error is not None
        assert "the client is slow" in slow[0].error.cause
        assert [output.data for output in outputs if output.request_id == "other"] == ["x"]

    play(story, limits=Limits(queued_outputs=2, slow_client="cancel"))


def test_or16_what_waits_in_front_of_a_batch_edge_is_bounded_by_name(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("big", "small")
        world.stages[0].put("big", b"x" * 600)
        world.stages[0].put("big", b"x" * 600)
        outputs = await world.until_terminal("big")
        assert outputs[-1].error is not None
        assert outputs[-1].error.stage == 0
        assert "1000B in front of a batch edge; make the edge chunk" in outputs[-1].error.cause
        assert (await world.finish("small"))[-1].terminal is Terminal.END

    play(story, limits=Limits(collected_bytes=1_000))


def test_or7_a_waiter_that_was_woken_and_cancelled_passes_the_output_on() -> None:
    async def main() -> None:
        outbox = Outbox(Limits(), lambda: None)
        first, second = (asyncio.create_task(outbox.get()) for _ in range(2))
        await asyncio.sleep(0)
        outbox.put(Lane("r"), OrchOutput("r", 0, "x"))  # wakes the first, which does not run any more
        first.cancel()
        assert (await second).data == "x"

    run_virtual(main())


def test_or16_what_was_purged_costs_no_room_in_the_common_order(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("kept")
        world.stages[0].put("kept", 0)
        for number in range(50):
            await world.add(f"r{number}")
            for chunk in range(20):
                world.stages[0].put(f"r{number}", chunk)
            await world.settle()
            assert await world.orchestrator.abort(f"r{number}")
        assert world.tables()["outputs"] == 51
        assert len(world.orchestrator._outbox._order) < 300
        outputs = await take_all(world.orchestrator)
        assert [output.request_id for output in outputs] == ["kept", *(f"r{number}" for number in range(50))]

    play(story)
