"""An orchestrator and workers in one process, over one local transport: whoever is killed says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stagewire import Job, Provider, RunReport, StageRequest, stage_provider
from stagewire.app import App
from stagewire.registry import Catalog
from stagewire.testing import StubContext, run_virtual
from stagewire_local import LocalOptions, LocalTransport
from stagewire_orchestrator import Orchestrator, OrchOutput
from stagewire_orchestrator.assembly import build
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.plugin import stagewire_pipelines
from stagewire_orchestrator.remote.worker import WorkerPipeline

HEAD = "version: 1\npipeline: orchestrator\nworkers: external\n"


class Worker:
    """A worker of one stage."""

    def __init__(self, pipeline: WorkerPipeline) -> None:
        self.pipeline = pipeline
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> RunReport:
        try:
            return await self.pipeline.run(Job(None, Path()))
        finally:
            await self.pipeline.shutdown()

    async def stop(self) -> RunReport:
        """Stop it in order, as SIGTERM does."""
        await self.pipeline.prepare_shutdown()
        return await self.task

    async def kill(self) -> None:
        """Let nothing of it run any more; what it had taken from mailboxes and not handled goes back."""
        for desk in self.pipeline._desks:
            desk._owners.clear()
            for each in desk._orchestrators.values():
                each.sending.cancel()
                each.post.close()
            desk._orchestrators.clear()
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


class Site:
    """What runs over one transport: one orchestrator, and any number of workers."""

    def __init__(self, transport: LocalTransport, options: OrchestratorOptions) -> None:
        self.transport = transport
        self.options = options
        self.workers: list[Worker] = []
        self.orchestrator = build(options, self.context())

    def context(self) -> StubContext:
        return StubContext(clock=asyncio.get_running_loop().time, backends={"transport": self.transport})

    def another(self) -> Orchestrator:
        return build(self.options, self.context())

    def work(self, stage: str, *replicas: int) -> Worker:
        worker = Worker(WorkerPipeline(self.options, self.context(), stage, replicas or (0,), scope="test"))
        self.workers.append(worker)
        return worker

    async def next(self, seconds: float = 200) -> OrchOutput:
        return await self.orchestrator.next_output(seconds)

    async def all_of(self, request: str) -> list[OrchOutput]:
        outputs: list[OrchOutput] = []
        while not outputs or not outputs[-1].finished:
            output = await self.next()
            assert output.request_id == request
            outputs.append(output)
        return outputs

    def tables(self) -> dict[str, float]:
        return {name: count for name, count in self.orchestrator.stats()["tables"].items() if count}

    async def close(self) -> None:
        await self.orchestrator.shutdown()
        for worker in self.workers:
            if not worker.task.done():
                await worker.stop()
        await self.transport.close()


Story = Callable[[Site], Coroutine[Any, Any, None]]


async def count(request: StageRequest) -> AsyncIterator[str]:
    """Four outputs, a second each."""
    for number in range(4):
        await asyncio.sleep(1)
        yield f"{request.prompt} {number}"


async def up(request: StageRequest) -> AsyncIterator[str]:
    async for chunk in request.chunks:
        yield chunk.upper()


async def twice(request: StageRequest) -> AsyncIterator[str]:
    async for chunk in request.chunks:
        yield chunk
        yield chunk


async def slow_to_let_go(request: StageRequest) -> AsyncIterator[str]:
    yield "begun"
    try:
        await asyncio.sleep(1_000)
    finally:
        await asyncio.sleep(3)


async def broken(request: StageRequest) -> AsyncIterator[str]:
    yield "one"
    raise ValueError("two cannot be had")


class Play:
    """Runs stories; ``stages`` may be added to."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pipeline.yaml"
        self.stages: dict[str, Any] = {
            "count": count,
            "up": up,
            "twice": twice,
            "slow_to_let_go": slow_to_let_go,
            "broken": broken,
        }

    def load(self, text: str) -> OrchestratorOptions:
        reaching = Provider(name="local", summary="", options=LocalOptions, factory=lambda *_: None)
        memory = Provider(name="memory", summary="", factory=lambda *_: None)
        catalog = Catalog.of(
            stages=[stage_provider(name, made_of) for name, made_of in self.stages.items()],
            pipelines=list(stagewire_pipelines()),
            transports=[reaching],
            kv_backends=[memory],
            lease_backends=[memory],
        )
        self._file.write_text(HEAD + text)
        options = App(catalog, environ={}).load([self._file]).options
        assert isinstance(options, OrchestratorOptions)
        return options

    def __call__(self, story: Story, text: str, *, real: bool = False) -> None:
        """Run in virtual time, or in ``real`` time where chunk edges have threads."""
        options = self.load(text)

        async def main() -> None:
            transport = LocalTransport(LocalOptions(), clock=asyncio.get_running_loop().time)
            await transport.open()
            site = Site(transport, options)
            try:
                async with asyncio.timeout(10_000 if not real else 60):
                    await story(site)
            finally:
                await site.close()

        (asyncio.run if real else run_virtual)(main())


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path)
