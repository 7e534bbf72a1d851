from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from stagewire import Closed
from stagewire.lifecycle import (
    Dependents,
    Module,
    PhaseFailed,
    ShutdownGate,
    StopSignal,
    TaskRegistry,
    shutdown_phases,
)
from stagewire.testing import run_virtual


class Framework:
    """Two modules, a dependent and a background task, which note what happens to them."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.stop = StopSignal()
        self.tasks = TaskRegistry("demo")
        self.dependents = Dependents("demo")
        self.modules = [self.module("writer"), self.module("store")]
        self.phases = shutdown_phases(
            "shutdown of demo", stop=self.stop, modules=self.modules, tasks=self.tasks, dependents=self.dependents
        )

    def note(self, what: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def act() -> None:
            self.order.append(f"{what} ({'stopping' if self.stop.is_set else 'serving'})")

        return act

    def module(self, name: str) -> Module:
        return Module(
            name=name,
            prepare=self.note(f"{name} prepares"),
            before=self.note(f"{name} before"),
            shutdown=self.note(f"{name} shuts down"),
        )


def test_sd5_the_order_of_a_shutdown() -> None:
    async def main() -> list[str]:
        framework = Framework()
        dependent = framework.dependents.register("fs")

        async def background() -> None:
            await framework.stop.wait()
            await asyncio.sleep(1)
            framework.order.append("background task ends")

        framework.tasks.spawn(background(), name="background")
        serving = asyncio.create_task(dependent.serve(framework.note("dependent stops")))
        await framework.phases.run()
        await serving
        with pytest.raises(Closed):
            framework.tasks.spawn(asyncio.sleep(0), name="late")
        return framework.order

    assert run_virtual(main()) == [
        "dependent stops (serving)",
        "writer prepares (serving)",
        "store prepares (serving)",
        "writer before (stopping)",
        "store before (stopping)",
        "writer shuts down (stopping)",
        "store shuts down (stopping)",
        "background task ends",
    ]


def test_sd5_nothing_is_stopped_while_a_dependent_has_not() -> None:
    async def main() -> None:
        framework = Framework()
        dependent = framework.dependents.register("fs")
        asyncio.get_running_loop().call_later(1, dependent.failed, OSError("in use"))
        with pytest.raises(PhaseFailed, match=r"step 'dependents' failed.*in use"):
            await framework.phases.run()
        assert framework.order == []
        assert not framework.stop.is_set
        dependent.finished()
        await framework.phases.run()
        assert len(framework.order) == 6

    run_virtual(main())


def test_sd5_admission_closes_while_the_public_service_is_still_there() -> None:
    async def main() -> None:
        gate, stop, tasks = ShutdownGate("writes"), StopSignal(), TaskRegistry("demo")

        async def prepare() -> None:
            gate.close()
            assert not stop.is_set

        phases = shutdown_phases(
            "demo", stop=stop, modules=[Module(name="writes", prepare=prepare, shutdown=gate.quiesced)], tasks=tasks
        )
        assert list(phases.remaining) == ["prepare writes", "stop", "shutdown writes", "tasks"]
        with gate.admit():
            run = asyncio.create_task(phases.run())
            await asyncio.sleep(1)
            assert list(phases.remaining) == ["shutdown writes", "tasks"], "it waits for the operation inside"
        await run
        assert stop.reason == "shutdown"

    run_virtual(main())


def test_sd5_the_reason_that_was_given_first_stands() -> None:
    async def main() -> None:
        framework = Framework()
        framework.stop.set("SIGTERM")
        await framework.phases.run()
        assert framework.stop.reason == "SIGTERM"

    run_virtual(main())
