"""After 10,000 requests, a third aborted and a third failed, every table is empty and memory is back (OR-19)."""

from __future__ import annotations

import asyncio
import gc
import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

from stagewire import LoggingOptions, make_logger
from stagewire_orchestrator import Clocks, Limits, Terminal
from stagewire_orchestrator.testing import FullClient, ScriptedClient

Play = Callable[..., None]

REQUESTS = 10_000
WAVE = 100


async def wave(world: Any, numbers: range) -> dict[Terminal | None, int]:
    ids = [f"r{number}" for number in numbers]
    await world.add(*ids)
    for stage in world.stages:
        for request in ids:
            stage.put(request, request * 10)
        for request in ids[1::3]:
            stage.put(request, error=ValueError(request))
        for request in (*ids[0::3], *ids[2::3]):
            stage.put(request, request, True)
        await world.settle()
        if stage is world.stages[1]:
            await asyncio.gather(*(world.orchestrator.abort(request) for request in ids[2::3]))
    terminals = [await world.orchestrator.next_output(1) for _ in range(world.tables()["outputs"])]
    for stage in world.stages:
        stage.submitted.clear()
        getattr(stage, "calls", []).clear()
        getattr(stage, "credits", {}).clear()
    counts: dict[Terminal | None, int] = {}
    for output in terminals:
        counts[output.terminal] = counts.get(output.terminal, 0) + 1
    return counts


def test_or19_ten_thousand_requests_leave_nothing(play: Play) -> None:
    async def story(world: Any) -> None:
        await wave(world, range(WAVE))
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for start in range(0, REQUESTS, WAVE):
            counts = await wave(world, range(start, start + WAVE))
            assert {kind: counts[kind] for kind in Terminal} == {"END": 34, "ERROR": 33, "CANCEL": 33}
        assert not world.tables()
        world.stages[0].put("r1", "late")
        await world.settle()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert grown < 1_000_000, f"{grown} bytes are left"
        assert not world.orchestrator.request_states
        assert len(asyncio.all_tasks()) == 9  # two for each stage, the handler, the dispatcher, and this one

    quiet = make_logger(LoggingOptions(level="error"), pipeline="p")
    clocks = Clocks(queued=1e6, first_output=1e6, between=1e6, total=1e6)
    kinds = itertools.cycle([ScriptedClient, FullClient])  # those that are asked to let go, and those that cannot be

    def client() -> ScriptedClient:
        return next(kinds)()

    play(story, client=client, log=quiet, clocks=clocks, limits=Limits(requests=WAVE, when_full="refuse"))
