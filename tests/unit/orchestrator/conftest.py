from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stagewire import (
    BuildContext,
    ConfigError,
    Job,
    Progress,
    Provider,
    RunReport,
    StageRequest,
    stage_provider,
)
from stagewire.app import App
from stagewire.config import Config
from stagewire.lifecycle import StopSignal
from stagewire.registry import Catalog
from stagewire.testing import no_leaks, run_virtual
from stagewire_local import LocalOptions, LocalTransport
from stagewire_orchestrator import Orchestrator, OrchOutput
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.pipeline import OrchestratorPipeline
from stagewire_orchestrator.plugin import stagewire_pipelines
from stagewire_orchestrator.testing import FullClient, ScriptedClient


class World:
    """An orchestrator over three scripted stages in a line, all of them final unless told otherwise."""

    def __init__(self, client: type[ScriptedClient] = ScriptedClient, **options: Any) -> None:
        self.stages: list[Any] = [client() for _ in range(3)]
        finals = options.pop("finals", {0, 1, 2})
        forward = options.pop("forward", lambda _stage, _prompt, collected: collected)
        self.orchestrator = Orchestrator(self.stages, forward, finals, **options)

    async def add(self, *ids: str) -> None:
        for each in ids:
            await self.orchestrator.add_request(each, f"prompt of {each}")
        await self.settle()

    async def settle(self) -> None:
        await asyncio.sleep(0.000_1)

    async def next(self) -> OrchOutput:
        return await self.orchestrator.next_output(1.0)

    async def silent(self) -> None:
        with pytest.raises(TimeoutError):
            await self.orchestrator.next_output(0.1)

    def tables(self) -> dict[str, float]:
        return {name: count for name, count in self.orchestrator.stats()["tables"].items() if count}

    async def finish(self, request: str) -> list[OrchOutput]:
        """Let every stage end the request; returns the outputs up to its terminal."""
        for stage in self.stages:
            stage.put(request, "x", True)
            await self.settle()
        return await self.until_terminal(request)

    async def until_terminal(self, request: str) -> list[OrchOutput]:
        outputs = []
        while True:
            output = await self.next()
            if output.request_id == request:
                outputs.append(output)
                if output.finished:
                    return outputs


Story = Callable[[World], Coroutine[Any, Any, None]]


@pytest.fixture
def play() -> Callable[..., None]:
    """Run a story in virtual time over a started world, and shut that down; options go to the orchestrator.

    ``real`` runs it in real time, for clients that keep the loop busy: virtual time would stand still.
    """

    def run(story: Story, *, real: bool = False, **options: Any) -> None:
        async def main() -> None:
            world = World(**options)
            await world.orchestrator.start()
            try:
                await story(world)
            finally:
                await world.orchestrator.shutdown()

        (asyncio.run if real else run_virtual)(main())

    return run


@pytest.fixture
def play_full(play: Callable[..., None]) -> Callable[..., None]:
    """The same with clients that have every optional method."""

    def run(story: Story, **options: Any) -> None:
        play(story, client=FullClient, **options)

    return run


Eventually = Callable[[Callable[[], bool]], Coroutine[Any, Any, None]]


@pytest.fixture
def eventually() -> Eventually:
    """Wait, in real time, for something that files or other threads bring about."""

    async def wait(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():  # noqa: ASYNC110 — nobody could set an event
                await asyncio.sleep(0.002)

    return wait


class Lab:
    """Runs pipelines from YAML in this process, with stages of the test's own beside those it always has.

    The stages that it always has: ``lines`` splits the input at line breaks, ``up`` makes capitals, ``twice`` says
    everything twice, ``join`` makes one text of all chunks.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.out.mkdir()
        self.progress: list[Progress] = []
        self.wav_limit: int | None = None
        self.transport: Any = None
        self.stages: dict[str, Provider[Any]] = {}
        for name, made_of in (("lines", lines), ("up", up), ("twice", twice), ("join", join)):
            self.stage(name, made_of)

    def stage(self, name: str, made_of: Any, **how: Any) -> None:
        """Add a stage."""
        self.stages[name] = stage_provider(name, made_of, **how)

    def app(self) -> App:
        def make_transport(options: LocalOptions, context: BuildContext) -> Any:
            self.transport = LocalTransport(options, clock=context.clock, log=context.log)
            return self.transport

        def make_pipeline(options: OrchestratorOptions, context: BuildContext) -> OrchestratorPipeline:
            limit = {} if self.wav_limit is None else {"wav_limit": self.wav_limit}
            self.pipeline = OrchestratorPipeline(options, context, **limit)
            return self.pipeline

        local = Provider(name="local", summary="", options=LocalOptions, factory=make_transport)
        (kind,) = stagewire_pipelines()
        catalog = Catalog.of(
            stages=list(self.stages.values()),
            pipelines=[replace(kind, factory=make_pipeline)],
            transports=[local],
            kv_backends=[Provider(name="memory", summary="", factory=_no_backend)],
            lease_backends=[Provider(name="memory", summary="", factory=_no_backend)],
        )
        return App(catalog, environ={})

    def load(self, text: str, app: App | None = None) -> Config:
        file = self.folder / "pipeline.yaml"
        file.write_text(f"version: 1\npipeline: orchestrator\nlogging: {{level: error}}\n{text}")
        return (app or self.app()).load([file])

    def problems(self, text: str) -> list[str]:
        """Return what is wrong with the file, each as it is shown, without the file's name."""
        try:
            self.load(text)
        except ConfigError as error:
            return [str(problem).removeprefix(str(self.folder / "pipeline.yaml")) for problem in error.problems]
        return []

    async def run_async(
        self, text: str, source: Any = None, stop: StopSignal | None = None, deadline: float = 30.0
    ) -> RunReport:
        """Run; the source is a text, or anything that iterates blocks."""
        app = self.app()
        blocks = Blocks(source) if isinstance(source, str | bytes | list) else source
        job = Job(blocks, self.out, self.progress.append)
        return await app.run(self.load(text, app), job, signals=False, stop=stop, deadline=deadline)

    def run(self, text: str, source: Any = None) -> RunReport:
        """The same, to its end, with nothing left behind."""
        with no_leaks():
            report = asyncio.run(self.run_async(text, source))
        self.assert_quiescent()
        return report

    def assert_quiescent(self) -> None:
        """Fail when anything of a request is left in the orchestrator, on the edges, or in the transport."""
        stats = self.pipeline._orchestrator.stats()
        assert not any(stats["tables"].values()), stats["tables"]
        if self.transport is not None:
            left = {edge: counts["unread"] for edge, counts in self.transport.stats().items() if counts.get("unread")}
            assert not left, left

    def read(self, name: str) -> str:
        return (self.out / name).read_text()


class Blocks:
    """An input of the blocks that the test gives."""

    name = "<test>"

    def __init__(self, source: Any) -> None:
        data = source.encode() if isinstance(source, str) else source
        self._blocks = [data] if isinstance(data, bytes) else data
        self.size = sum(len(block) for block in self._blocks)

    def is_same_file(self, _path: Path) -> bool:
        return False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self._blocks:
            yield block


def _no_backend(_options: Any, _context: BuildContext) -> Any:
    raise AssertionError("nobody needs it")


async def lines(request: StageRequest) -> AsyncIterator[str]:
    rest = ""
    async for block in request.chunks:
        *whole, rest = (rest + block.decode()).split("\n")
        for line in whole:
            yield line
    if rest:
        yield rest


async def up(request: StageRequest) -> AsyncIterator[str]:
    async for chunk in request.chunks:
        yield chunk.upper()


async def twice(request: StageRequest) -> AsyncIterator[Any]:
    async for chunk in request.chunks:
        yield chunk
        yield chunk


async def join(request: StageRequest) -> str:
    return " ".join([str(chunk) async for chunk in request.chunks])


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
