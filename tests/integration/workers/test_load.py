"""A hundred requests of fifty chunks over two worker processes, while a worker or the orchestrator is taken away."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from stagewire import Job
from stagewire.app import App
from stagewire_orchestrator import Orchestrator, OrchOutput, Terminal
from stagewire_orchestrator.testing import driven

pytestmark = pytest.mark.integration

RUNS = int(os.environ.get("STAGEWIRE_CHAOS_RUNS", "2"))
REQUESTS, CHUNKS = 100, 50
PATIENCE = 90.0

CONFIG = """
version: 1
pipeline: orchestrator
workers: local
logging: {level: error}
transport: {use: rabbitmq, url: "URL"}
stages: {sentences: {use: text.sentences, idempotent: true}, morse: {use: morse.encode}}
edges: [{from: sentences, to: morse, kind: chunk}]
outputs: {morse: {file: x.txt}}
"""

TEXT = " ".join("Et." for _ in range(CHUNKS)).encode()
MORSE = [". - .-.-.-"] * CHUNKS

Drive = Callable[[Orchestrator], Awaitable[None]]


def run(url: str, folder: Path, drive: Drive) -> None:
    file = folder / "load.yaml"
    file.write_text(CONFIG.replace("URL", url))
    app = App()

    async def main() -> None:
        async with asyncio.timeout(PATIENCE):
            await app.run(driven(app.load([file]), drive), Job(None, folder), signals=False)

    asyncio.run(main())


def workers(stage: str) -> list[int]:
    """Return the process ids of the workers of a stage that this process started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == os.getpid() and b"--stage" in words and stage.encode() in words:
            found.append(int(folder.name))
    return found


async def add_all(orchestrator: Orchestrator) -> None:
    for number in range(REQUESTS):
        await orchestrator.add_request(f"r{number}", TEXT)


async def take_all(
    orchestrator: Orchestrator, at: Callable[[int], None] = lambda _count: None
) -> dict[str, list[OrchOutput]]:
    outputs: defaultdict[str, list[OrchOutput]] = defaultdict(list)
    count = ended = 0
    while ended < REQUESTS:
        output = await orchestrator.next_output(PATIENCE)
        outputs[output.request_id].append(output)
        ended += output.finished
        count += 1
        at(count)
    return outputs


@pytest.mark.parametrize("number", range(RUNS))
@pytest.mark.parametrize("stage", ["morse", "sentences"])
def test_or15_a_worker_killed_under_load_loses_and_doubles_nothing(
    amqp_url: str, tmp_path: Path, stage: str, number: int
) -> None:
    moment = REQUESTS * CHUNKS * (number + 1) // (RUNS + 2)

    def kill(count: int) -> None:
        if count == moment:
            for pid in workers(stage):
                os.kill(pid, signal.SIGKILL)

    async def drive(orchestrator: Orchestrator) -> None:
        await add_all(orchestrator)
        outputs = await take_all(orchestrator, kill)
        for name, each in outputs.items():
            assert each[-1].terminal is Terminal.END, (name, each[-1].error)
            assert [output.data for output in each if output.has_data] == MORSE, name
        assert not any(orchestrator.stats()["tables"].values())

    run(amqp_url, tmp_path, drive)


@pytest.mark.parametrize("number", range(RUNS))
def test_or8_the_orchestrator_shut_down_under_load_gives_every_request_one_terminal(
    amqp_url: str, tmp_path: Path, number: int
) -> None:
    moment = REQUESTS * CHUNKS * (number + 1) // (RUNS + 2)

    async def drive(orchestrator: Orchestrator) -> None:
        await add_all(orchestrator)
        stopping: list[asyncio.Task[None]] = []

        def stop(count: int) -> None:
            if count == moment:
                stopping.append(asyncio.ensure_future(orchestrator.shutdown()))

        outputs = await take_all(orchestrator, stop)
        await stopping[0]
        for name, each in outputs.items():
            assert [output.finished for output in each] == [False] * (len(each) - 1) + [True], name
            assert [output.data for output in each if output.has_data] == MORSE[: len(each) - 1], name
            assert each[-1].terminal in (Terminal.END, Terminal.CANCEL)
        assert any(each[-1].terminal is Terminal.CANCEL for each in outputs.values())

    run(amqp_url, tmp_path, drive)
    assert not workers("morse")
