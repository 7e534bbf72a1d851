"""The orchestrator: outputs per second through three stages, with 1 and with 1,000 concurrent requests.

Everybody does the same: each stage puts out ten outputs for a request, one by one; they are collected, and forwarded
when the stage has ended; the last stage's go to the client. Peers: the floor, that is bare `asyncio.Queue`s and tasks
for the same hops, without registration, abort, isolation, bounds or clocks; FastStream's in-memory broker (its test
broker, which is what it offers for running without a server); Haystack's asynchronous pipeline.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from _table import Row, interleave, show
from stagewire_orchestrator import Orchestrator, StageOutput

OUTPUTS = 10
STAGES = 3

Work = Callable[[int, int], Coroutine[Any, Any, None]]
"""``work(requests, concurrent)``: carries so many requests through, so many at a time."""


class EchoStage:
    """A stage client that does nothing but put out."""

    def __init__(self) -> None:
        self._outputs: asyncio.Queue[list[StageOutput]] = asyncio.Queue()

    async def submit(self, request_id: str, _payload: Any) -> None:
        for number in range(OUTPUTS):
            self._outputs.put_nowait([StageOutput(request_id, number, finished=number == OUTPUTS - 1)])

    async def get_output(self) -> list[StageOutput]:
        return await self._outputs.get()


async def ours(requests: int, concurrent: int) -> None:
    stages = [EchoStage() for _ in range(STAGES)]
    orchestrator = Orchestrator(stages, lambda _stage, _prompt, collected: collected, {STAGES - 1})
    await orchestrator.start()
    try:
        await _drive(requests, concurrent, lambda name: orchestrator.add_request(name, name), _finished(orchestrator))
    finally:
        await orchestrator.shutdown()


def _finished(orchestrator: Orchestrator) -> Callable[[], Awaitable[bool]]:
    async def finished() -> bool:
        return (await orchestrator.next_output(60)).finished

    return finished


async def _drive(
    requests: int, concurrent: int, add: Callable[[str], Awaitable[Any]], finished: Callable[[], Awaitable[bool]]
) -> None:
    """Keep ``concurrent`` requests under way until all have been carried through."""
    for number in range(min(requests, concurrent)):
        await add(f"r{number}")
    started, ended = min(requests, concurrent), 0
    while ended < requests:
        if await finished():
            ended += 1
            if started < requests:
                await add(f"r{started}")
                started += 1


async def floor(requests: int, concurrent: int) -> None:
    stages = [EchoStage() for _ in range(STAGES)]
    ready: asyncio.Queue[tuple[int, list[StageOutput]]] = asyncio.Queue()
    client: asyncio.Queue[StageOutput] = asyncio.Queue()

    async def read(number: int, stage: EchoStage) -> None:
        while True:
            await ready.put((number, await stage.get_output()))

    async def dispatch() -> None:
        collected: dict[tuple[str, int], list[Any]] = {}
        while True:
            number, outputs = await ready.get()
            for output in outputs:
                if number == STAGES - 1:
                    await client.put(output)
                    continue
                collected.setdefault((output.request_id, number), []).append(output.data)
                if output.finished:
                    payload = collected.pop((output.request_id, number))
                    await stages[number + 1].submit(output.request_id, payload)

    async def finished() -> bool:
        return (await client.get()).finished

    tasks = [asyncio.create_task(read(number, stage)) for number, stage in enumerate(stages)]
    tasks.append(asyncio.create_task(dispatch()))
    try:
        await _drive(requests, concurrent, lambda name: stages[0].submit(name, name), finished)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def faststream(requests: int, concurrent: int) -> None:
    from faststream.nats import NatsBroker, TestNatsBroker  # noqa: PLC0415 — a peer that may not be installed

    broker = NatsBroker(logger=None)
    client: asyncio.Queue[bool] = asyncio.Queue()
    collected: dict[tuple[str, int], list[int]] = {}

    def add_stage(number: int) -> None:
        @broker.subscriber(f"stage{number}")
        async def put_out(message: dict[str, Any]) -> None:
            for item in range(OUTPUTS):
                output = {"id": message["id"], "data": item, "finished": item == OUTPUTS - 1}
                await broker.publish(output, f"outputs{number}")

        @broker.subscriber(f"outputs{number}")
        async def collect(output: dict[str, Any]) -> None:
            if number == STAGES - 1:
                client.put_nowait(output["finished"])
                return
            collected.setdefault((output["id"], number), []).append(output["data"])
            if output["finished"]:
                payload = collected.pop((output["id"], number))
                await broker.publish({"id": output["id"], "payload": payload}, f"stage{number + 1}")

    for number in range(STAGES):
        add_stage(number)
    async with TestNatsBroker(broker):
        await _drive(
            requests, concurrent, lambda name: broker.publish({"id": name, "payload": name}, "stage0"), client.get
        )


async def haystack(requests: int, concurrent: int) -> None:
    from haystack import Pipeline, component  # noqa: PLC0415 — a peer that may not be installed

    @component
    class Echo:
        @component.output_types(outputs=list)
        def run(self, outputs: list[Any]) -> dict[str, Any]:
            return {"outputs": [number for number in range(OUTPUTS) if outputs]}

        @component.output_types(outputs=list)
        async def run_async(self, outputs: list[Any]) -> dict[str, Any]:
            return self.run(outputs)

    pipeline = Pipeline()
    for number in range(STAGES):
        pipeline.add_component(f"s{number}", Echo())
    for number in range(STAGES - 1):
        pipeline.connect(f"s{number}.outputs", f"s{number + 1}.outputs")
    limit = asyncio.Semaphore(concurrent)

    async def one() -> None:
        async with limit:
            await pipeline.run_async({"s0": {"outputs": [1]}})

    await asyncio.gather(*(one() for _ in range(requests)))


PEERS: dict[str, tuple[str | None, Work, float]] = {
    "stagewire": (None, ours, 1),
    "bare asyncio queues": (None, floor, 1),
    "FastStream in memory": ("faststream", faststream, 0.1),
    "Haystack Pipeline.run_async": ("haystack", haystack, 0.1),
}
"""Name, module that must be installed, work, and which share of the requests it is given."""


def _rate(work: Work, requests: int, concurrent: int) -> float:
    gc.collect()
    began = time.perf_counter()
    asyncio.run(work(requests, concurrent))
    return requests * OUTPUTS / (time.perf_counter() - began)


def measure(*, quick: bool) -> list[Row]:
    """Return outputs per second at the client, ours and each peer's."""
    logging.disable(logging.CRITICAL)
    rows: list[Row] = []
    for concurrent, requests in ((1, 500), (1_000, 4_000)):
        total = requests // 4 if quick else requests
        here = {name: peer for name, peer in PEERS.items() if peer[0] is None or importlib.util.find_spec(peer[0])}
        subjects = {
            name: partial(_rate, work, max(20, int(total * share)), concurrent)
            for name, (_, work, share) in here.items()
        }
        medians = interleave(subjects, 3 if quick else 5)
        for name, value in medians.items():
            label = f"{concurrent:,} concurrent: {name}"
            compared = ("stagewire is", medians["stagewire"] / value) if name != "stagewire" else (None, None)
            rows.append(Row(label, value, "outputs/s", *compared))
        rows += [Row(f"{name}: not installed", 0, "") for name in PEERS if name not in here]
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    show("Orchestrator: outputs through three stages", measure(quick=parser.parse_args().quick))
