from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stagewire.testing import run_virtual
from stagewire_orchestrator import Orchestrator, OrchOutput
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
