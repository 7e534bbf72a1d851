"""Four clocks per request; the error names the clock, how long it ran, and the stage that is waited for (OR-17)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stagewire.testing import run_virtual
from stagewire_orchestrator import Clocks, Edge, Graph, Orchestrator, OrchOutput, Terminal
from stagewire_orchestrator.testing import FullClient

Play = Callable[..., None]


def now() -> float:
    return asyncio.get_running_loop().time()


async def expires(world: Any, at: float, stage: Any, *words: str) -> None:
    output: OrchOutput = await world.orchestrator.next_output(10_000)
    while not output.finished:
        output = await world.orchestrator.next_output(10_000)
    assert now() == pytest.approx(at, abs=0.01)
    assert output.error is not None
    assert output.error.stage == stage
    for word in (*words, f"waiting for {stage!r}"):
        assert word in output.error.cause
    await world.settle()
    assert not world.tables()


def test_or17_queued_runs_until_the_first_stage_has_taken_the_request(play: Play) -> None:
    async def story(world: Any) -> None:
        world.stages[0].on_submit = lambda request, _: asyncio.sleep(1_000) if request == "slow" else None
        await world.add("slow")
        await expires(world, 5.0, 0, "within 5 s", "clock queued")
        await world.add("quick")  # the worker was freed from the submission that hung
        assert (await world.finish("quick"))[-1].terminal is Terminal.END

    play(story, clocks=Clocks(queued=5))


def test_or17_first_output_runs_from_then_on(play: Play) -> None:
    async def story(world: Any) -> None:
        world.stages[0].on_submit = lambda *_: asyncio.sleep(4)
        await world.add("r")
        await expires(world, 14.0, 0, "no first output within 10 s", "clock first_output")

    play(story, clocks=Clocks(queued=5, first_output=10))


def test_or17_between_runs_from_output_to_output_and_names_the_stage_at_work(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        for _ in range(10):
            await asyncio.sleep(4)
            world.stages[0].put("r", "x")
            assert (await world.next()).data == "x"
        world.stages[0].put("r", "x", True)
        assert (await world.next()).data == "x"
        await expires(world, 45.0, 1, "no further output within 5 s", "clock between")

    play(story, clocks=Clocks(first_output=50, between=5))


def test_or17_between_does_not_run_while_the_client_is_the_slow_one(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        world.stages[0].put("r", "x")
        await asyncio.sleep(100)
        assert (await world.next()).data == "x"
        began = now()
        await expires(world, began + 5, 0)

    play(story, clocks=Clocks(between=5))


def test_or17_total_runs_whatever_happens(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")

        async def speak() -> None:
            while True:
                world.stages[0].put("r", "x")
                await asyncio.sleep(1)

        speaking = asyncio.create_task(speak())
        await expires(world, 20.0, 0, "not done within 20 s", "clock total")
        speaking.cancel()

    play(story, clocks=Clocks(between=5, total=20))


def test_or17_a_request_in_time_is_left_alone_and_leaves_no_timer(play: Play) -> None:
    async def story(world: Any) -> None:
        await world.add("r")
        assert (await world.finish("r"))[-1].terminal is Terminal.END
        await asyncio.sleep(100)
        await world.silent()

    play(story, clocks=Clocks(queued=1, first_output=2, between=3, total=4))


def test_or17_a_stage_that_is_starved_or_held_back_is_not_blamed() -> None:
    async def main() -> None:
        graph = Graph("abcd", [Edge("a", "b", "chunk"), Edge("b", "c", "chunk"), Edge("c", "d", "chunk")], "d")
        clients = {name: FullClient() for name in "abcd"}
        clients["a"].work["r"] = "blocked"
        clients["b"].work["r"] = "blocked"
        clients["d"].work["r"] = "starved"
        async with Orchestrator(clients, lambda *_: None, "d", graph=graph, clocks=Clocks(total=3)) as orchestrator:
            await orchestrator.add_request("r", 1)
            output = await orchestrator.next_output(10)
            assert output.error is not None
            assert output.error.stage == "c"

    run_virtual(main())


def test_or17_the_clocks_of_many_requests_run_side_by_side(play: Play) -> None:
    async def story(world: Any) -> None:
        ends = {}
        for number in range(20):
            await world.orchestrator.add_request(f"r{number}", 0)
            ends[f"r{number}"] = now() + 5
            await asyncio.sleep(0.5)
        while ends:
            output = await world.orchestrator.next_output(10)
            assert now() >= ends.pop(output.request_id) - 0.001

    play(story, clocks=Clocks(total=5))
