"""One cancel at every tick: whatever it hits, each request ends once and nothing is left (OR-8, OR-12)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stagewire import Closed, LoggingOptions, make_logger
from stagewire.testing import SweepRun, sweep_cancels
from stagewire_orchestrator import Limits, Orchestrator, OrchOutput, RequestRefused
from stagewire_orchestrator.testing import FullClient, ScriptedClient

QUIET = make_logger(LoggingOptions(level="error"), pipeline="sweep")


class Answering(ScriptedClient):
    """A stage that answers what is submitted, unless it is to be silent."""

    async def submit(self, request_id: str, payload: Any, /) -> None:
        await super().submit(request_id, payload)
        await asyncio.sleep(0.1)
        if "silent" not in request_id:
            self.put(request_id, "a")
            self.put(request_id, "b", True)


class Echo(Answering, FullClient):
    async def abort(self, request_id: str) -> None:
        await asyncio.sleep(0.1)
        await super().abort(request_id)


class World:
    def __init__(self, client: type[ScriptedClient]) -> None:
        stages = [client() for _ in range(3)]
        limits = Limits(requests=3, release_timeout=5)
        self.orchestrator = Orchestrator(stages, self.forward, {0, 2}, limits=limits, log=QUIET)
        self.admitted: Counter[str] = Counter()
        self.seen: list[OrchOutput] = []

    async def forward(self, _stage: int, _prompt: Any, collected: Any) -> Any:
        await asyncio.sleep(0.05)
        return collected

    async def add(self, request: str) -> None:
        await self.orchestrator.add_request(request, "prompt")
        self.admitted[request] += 1

    async def read(self, count: int) -> None:
        for _ in range(count):
            output = await self.orchestrator.next_output(0.3)
            self.seen.append(output)


async def scenario(world: World) -> None:
    async with world.orchestrator as orchestrator:
        await world.add("one")
        await world.add("silent")
        await world.read(1)
        reading = asyncio.create_task(read_on(world))
        try:
            await world.add("two")
            await world.add("three")  # waits: three are in flight
            await orchestrator.abort("silent")
            await world.add("silent")
            await asyncio.sleep(0.2)
            await orchestrator.abort("silent")
        finally:
            reading.cancel()
            await asyncio.wait([reading])


async def read_on(world: World) -> None:
    while True:
        world.seen.append(await world.orchestrator.next_output())


async def check(world: World, run: SweepRun) -> None:
    await world.orchestrator.shutdown()
    while True:
        try:
            world.seen.append(await world.orchestrator.next_output(1))
        except Closed:
            break
    ended = Counter(output.request_id for output in world.seen if output.finished)
    assert ended == world.admitted
    assert not any(world.orchestrator.stats()["tables"].values()), world.orchestrator.stats()["tables"]
    if run.tick is None:
        assert not isinstance(run.outcome, BaseException)
        assert ended == {"one": 1, "two": 1, "three": 1, "silent": 2}


@pytest.mark.parametrize("client", [Echo, Answering])
@pytest.mark.parametrize("cancels", [1, 2])
def test_or8_or12_a_cancel_at_any_tick_leaves_nothing(client: type[ScriptedClient], cancels: int) -> None:
    result = sweep_cancels(lambda: World(client), scenario, check, cancels=cancels)
    assert result.hits > 30


class CancelledCaller:
    """Whose tasks call the orchestrator one method each; the victim is one of those."""

    def __init__(self) -> None:
        self.world = World(Echo)
        self.victims: dict[str, asyncio.Task[Any]] = {}


@pytest.mark.parametrize("method", ["add", "abort", "next", "shutdown"])
def test_or12_cancelling_one_caller_disturbs_no_other(method: str) -> None:
    async def story(caller: CancelledCaller) -> None:
        world, orchestrator = caller.world, caller.world.orchestrator
        await orchestrator.start()
        for request in ("one", "silent", "two"):
            await world.add(request)
        calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "add": lambda: world.add("late"),
            "abort": lambda: orchestrator.abort("silent"),
            "next": lambda: orchestrator.next_output(50),
            "shutdown": orchestrator.shutdown,
        }
        caller.victims[method] = asyncio.create_task(calls[method]())
        reading = asyncio.create_task(read_on(world))
        await asyncio.sleep(2)
        await asyncio.wait([caller.victims[method]])
        reading.cancel()
        await asyncio.wait([reading])

    async def after(caller: CancelledCaller, _run: SweepRun) -> None:
        world, victim = caller.world, caller.victims[method]
        if method == "next" and not victim.cancelled() and not victim.exception():
            world.seen.append(victim.result())
        elif not victim.cancelled() and victim.exception() is not None:
            assert isinstance(victim.exception(), RequestRefused | Closed | TimeoutError)
        await world.orchestrator.shutdown()
        while True:
            try:
                world.seen.append(await world.orchestrator.next_output(1))
            except Closed:
                break
        ended = Counter(output.request_id for output in world.seen if output.finished)
        del ended["late"]
        assert ended == {"one": 1, "silent": 1, "two": 1}
        chunks = [output.data for output in world.seen if output.request_id == "two" and output.has_data]
        assert method == "shutdown" or chunks == ["a", "b", "a", "b"]
        assert not any(world.orchestrator.stats()["tables"].values())

    sweep_cancels(CancelledCaller, story, after, victim=lambda caller: caller.victims.get(method))
