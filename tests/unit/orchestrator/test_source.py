"""The source document, literally: the ten steps of example 1, its two anti-examples, its life cycle.

Stages 0 -> 1 -> 2, final = {0, 2}, request ("r1", "hi there").
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest

from stagewire.testing import Stuck, run_virtual
from stagewire_orchestrator import Orchestrator, OrchOutput
from stagewire_orchestrator.testing import ScriptedClient, take_all

FINAL = {0, 2}


class Example:
    """Example 1: three scripted stages, and a forward function that notes its calls."""

    def __init__(self) -> None:
        self.s0, self.s1, self.s2 = self.stages = [ScriptedClient() for _ in range(3)]
        self.forwarded: list[tuple[int, str, list[Any]]] = []
        self.orchestrator = Orchestrator(self.stages, self.forward, FINAL)

    def forward(self, stage: int, prompt: str, collected: list[Any]) -> Any:
        self.forwarded.append((stage, prompt, list(collected)))
        return [item.upper() for item in collected] if stage == 1 else collected

    async def next(self) -> tuple[Any, Any, bool]:
        output = await self.orchestrator.next_output(1.0)
        assert output.request_id == "r1"
        return (output.stage_id, output.data, output.finished)

    async def silent(self) -> None:
        with pytest.raises(TimeoutError):
            await self.orchestrator.next_output(1.0)


async def settle() -> None:
    await asyncio.sleep(0.001)


def example(story: Any) -> None:
    async def main() -> None:
        it = Example()
        await it.orchestrator.start()
        await story(it)
        await it.orchestrator.shutdown()

    run_virtual(main())


def test_or1_step_1_add_request_only_queues() -> None:
    async def main() -> None:
        it = Example()
        await it.orchestrator.add_request("r1", "hi there")
        await settle()
        assert not it.orchestrator.request_states
        assert not any(stage.submitted for stage in it.stages)
        await it.orchestrator.start()
        await settle()
        assert it.s0.submitted == [("r1", "hi there")]
        await it.orchestrator.shutdown()

    run_virtual(main())


def test_or2_step_2_the_request_is_registered_before_it_is_submitted() -> None:
    seen: list[set[Any]] = []

    async def story(it: Example) -> None:
        it.s0.on_submit = lambda request_id, _: seen.append(it.orchestrator.request_states[request_id].submitted)
        await it.orchestrator.add_request("r1", "hi there")
        await settle()
        assert it.s0.submitted == [("r1", "hi there")]
        assert seen == [{0}]

    example(story)


def test_or5_steps_3_to_10_of_the_example() -> None:
    async def story(it: Example) -> None:
        await it.orchestrator.add_request("r1", "hi there")

        it.s0.put("r1", "hi")  # steps 3 to 5
        assert await it.next() == (0, "hi", False)
        assert it.forwarded == []

        it.s0.put("r1", "there", True)  # step 6: to the client, and on to stage 1
        assert await it.next() == (0, "there", False)
        await settle()
        assert it.forwarded == [(1, "hi there", ["hi", "there"])]
        assert it.s1.submitted == [("r1", ["HI", "THERE"])]

        it.s1.put("r1", ["HI", "THERE"], True)  # step 7: only forwarded
        await it.silent()
        assert it.forwarded[1] == (2, "hi there", [["HI", "THERE"]])
        assert it.s2.submitted == [("r1", [["HI", "THERE"]])]

        it.s2.put("r1", "wav:HI")  # step 8
        assert await it.next() == (2, "wav:HI", False)
        assert it.orchestrator.request_states["r1"].finished == {0, 1}

        it.s2.put("r1", "wav:THERE", True)  # step 9: the terminal, and the ledger is empty
        assert await it.next() == (2, "wav:THERE", True)
        assert not it.orchestrator.request_states

        assert it.orchestrator.dropped_outputs == 0
        it.s2.put("r1", "wav:LATE")  # step 10: counted, and revives nothing
        await it.silent()
        assert it.orchestrator.dropped_outputs == 1
        assert not it.orchestrator.request_states

    example(story)


def test_or5_outputs_are_what_the_source_says_field_by_field() -> None:
    async def story(it: Example) -> None:
        await it.orchestrator.add_request("r1", "hi there")
        it.s0.put("r1", "hi")
        assert await it.orchestrator.next_output(1.0) == OrchOutput("r1", 0, "hi", False)

    example(story)


def test_or2_anti_example_1_a_stage_that_answers_inside_submit_loses_nothing() -> None:
    async def story(it: Example) -> None:
        async def answer_at_once(request_id: str, _payload: Any) -> None:
            it.s0.put(request_id, "hi")
            await asyncio.sleep(1.0)  # the control is given away, as in the source

        it.s0.on_submit = answer_at_once
        await it.orchestrator.add_request("r1", "hi there")
        assert await it.next() == (0, "hi", False)
        assert it.orchestrator.dropped_outputs == 0

    example(story)


class AntiExample2:
    """The dispatcher that waits on the stages in turn, as the source has it."""

    def __init__(self, stages: list[ScriptedClient]) -> None:
        self._stages = stages
        self._collected: list[list[Any]] = [[] for _ in stages]
        self.outputs: asyncio.Queue[tuple[int, Any, bool]] = asyncio.Queue()

    async def run(self) -> None:
        while True:
            for stage, client in enumerate(self._stages):
                for output in await client.get_output():  # one at a time
                    await self._dispatch(stage, output)

    async def _dispatch(self, stage: int, output: Any) -> None:
        self._collected[stage].append(output.data)
        if stage in FINAL:
            self.outputs.put_nowait((stage, output.data, output.finished and stage == 2))
        if output.finished and stage < 2:
            await self._stages[stage + 1].submit(output.request_id, self._collected[stage])


def speaking_stages() -> list[ScriptedClient]:
    """Three stages that answer by themselves: stage 0 in two outputs with a pause between, the others in one."""

    async def speak(client: ScriptedClient, request_id: str, outputs: list[Any]) -> None:
        for number, data in enumerate(outputs, 1):
            client.put(request_id, data, number == len(outputs))
            await asyncio.sleep(0.1)

    stages = [ScriptedClient() for _ in range(3)]
    stages[0].on_submit = lambda request_id, _: speak(stages[0], request_id, ["hi", "there"])
    stages[1].on_submit = lambda request_id, payload: speak(stages[1], request_id, [[x.upper() for x in payload]])
    stages[2].on_submit = lambda request_id, payload: speak(stages[2], request_id, [f"wav:{x}" for x in payload[0]])
    return stages


def test_or9_anti_example_2_deadlocks_and_ours_does_not() -> None:
    async def theirs() -> None:
        stages = speaking_stages()
        dispatcher = AntiExample2(stages)
        running = asyncio.create_task(dispatcher.run())
        await stages[0].submit("r1", "hi there")
        while not (await dispatcher.outputs.get())[2]:
            pass
        running.cancel()

    async def ours() -> list[tuple[Any, Any, bool]]:
        async with Orchestrator(speaking_stages(), lambda _stage, _prompt, collected: collected, FINAL) as orchestrator:
            await orchestrator.add_request("r1", "hi there")
            return [(each.stage_id, each.data, each.finished) for each in await take_all(orchestrator)]

    with pytest.raises(Stuck):
        run_virtual(theirs())
    assert run_virtual(ours()) == [
        (0, "hi", False),
        (0, "there", False),
        (2, "wav:HI", False),
        (2, "wav:THERE", True),
    ]


def test_or7_next_output_waits_for_at_most_its_timeout() -> None:
    async def story(it: Example) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(TimeoutError):
            await it.orchestrator.next_output(240.0)
        assert loop.time() - began == pytest.approx(240.0)
        with pytest.raises(TimeoutError):
            await it.orchestrator.next_output(0)

    example(story)


def test_or7_a_timeout_loses_no_output() -> None:
    async def story(it: Example) -> None:
        await it.orchestrator.add_request("r1", "hi there")
        waiting = [asyncio.create_task(it.orchestrator.next_output(1.0)) for _ in range(3)]
        await asyncio.sleep(0.999)
        waiting[0].cancel()
        it.s0.put("r1", "hi")
        results = await asyncio.gather(*waiting, return_exceptions=True)
        got = [result for result in results if isinstance(result, OrchOutput)]
        assert [output.data for output in got] == ["hi"]

    example(story)


def leftovers() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


def test_or8_shutdown_ends_every_task_it_started() -> None:
    async def main() -> None:
        it = Example()
        await it.orchestrator.start()
        assert leftovers()
        await it.orchestrator.add_request("r1", "hi there")
        await settle()
        await it.orchestrator.shutdown()
        assert not leftovers()
        await it.orchestrator.shutdown()

    run_virtual(main())
    gc.collect()  # a task destroyed while pending, or an exception nobody retrieved, is an error here


def test_or8_references_are_kept_so_that_a_collection_takes_no_worker() -> None:
    async def story(it: Example) -> None:
        gc.collect()
        await it.orchestrator.add_request("r1", "hi there")
        gc.collect()
        it.s0.put("r1", "hi")
        gc.collect()
        assert await it.next() == (0, "hi", False)

    example(story)


@pytest.mark.parametrize("before_start", [False, True])
def test_or8_shutdown_of_an_orchestrator_that_did_nothing(before_start: bool) -> None:
    async def main() -> None:
        it = Example()
        if not before_start:
            await it.orchestrator.start()
        await asyncio.gather(it.orchestrator.shutdown(), it.orchestrator.shutdown())

    run_virtual(main())


def test_or8_start_returns_although_the_stages_are_silent() -> None:
    async def main() -> None:
        it = Example()
        async with asyncio.timeout(1.0):
            await it.orchestrator.start()
        await it.orchestrator.shutdown()

    coroutine: Coroutine[Any, Any, None] = main()
    run_virtual(coroutine)
