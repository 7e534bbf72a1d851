from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stagewire import BuildContext, Job, Options, Provider, RunReport
from stagewire.app import App
from stagewire.config import Config
from stagewire.registry import Catalog

Act = Callable[[], Awaitable[Any]]


async def _nothing() -> None:
    return None


class Theatre:
    """An App whose pipeline and backends do as the test says and leave a trail of what was called.

    ``acts`` holds what happens in a call, by the name that the call leaves in the trail: ``run``, ``open transport``, …
    """

    def __init__(self, folder: Path) -> None:
        self.trail: list[str] = []
        self.acts: dict[str, Act] = {}
        self.contexts: list[BuildContext] = []
        self.uses: tuple[str, ...] = ("transport", "kv", "lease")
        self.folder = folder
        self.clock: Callable[[], float] = time.monotonic

    async def act(self, name: str, default: Act = _nothing) -> Any:
        self.trail.append(name)
        return await self.acts.get(name, default)()

    def backend(self, axis: str, name: str) -> Provider[Any]:
        theatre = self

        class Backend:
            async def open(self) -> None:
                await theatre.act(f"open {axis}")

            async def close(self) -> None:
                await theatre.act(f"close {axis}")

        def build(_options: Options, _context: BuildContext) -> Backend:
            theatre.trail.append(f"build {axis}")
            return Backend()

        return Provider(name=name, summary="", factory=build)

    def build(self, _options: Options, context: BuildContext) -> Any:
        self.contexts.append(context)
        for use in self.uses:
            getattr(context, use)()
        return Play(self)

    def app(self, **fields: Any) -> App:
        catalog = Catalog.of(
            pipelines=[Provider(name="play", summary="", factory=self.build, **fields)],
            transports=[self.backend("transport", "local")],
            kv_backends=[self.backend("kv", "memory")],
            lease_backends=[self.backend("lease", "memory")],
        )
        return App(catalog, clock=self.clock, environ={})

    def config(self, app: App, text: str = "") -> Config:
        file = self.folder / "play.yaml"
        file.write_text("version: 1\npipeline: play\n" + text)
        return app.load([file])

    async def run(self, **options: Any) -> RunReport:
        app = self.app()
        return await app.run(self.config(app), Job(input=None, output=self.folder), **options)


class Play:
    """The pipeline."""

    def __init__(self, theatre: Theatre) -> None:
        self._theatre = theatre

    def graph(self) -> str:
        return "flowchart LR"

    async def run(self, job: Job) -> RunReport:
        async def report() -> RunReport:
            return RunReport()

        result: RunReport = await self._theatre.act("run", report)
        return result

    async def prepare_shutdown(self) -> None:
        await self._theatre.act("prepare")

    async def shutdown(self) -> None:
        await self._theatre.act("shutdown")


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)
