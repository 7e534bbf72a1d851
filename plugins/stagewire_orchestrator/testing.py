"""Stage clients for tests of forward functions, graphs and clients: they do what the test says, when it says so."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from stagewire import BuildContext, Job, RunReport
from stagewire_orchestrator.assembly import build
from stagewire_orchestrator.clients import Doing
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.mailbox import Mailbox
from stagewire_orchestrator.mermaid import flowchart
from stagewire_orchestrator.orchestrator import Orchestrator
from stagewire_orchestrator.outputs import OrchOutput, StageOutput


class ScriptedClient:
    """A stage client with nothing but the two methods that every client has.

    Attributes:
        submitted: What was submitted, as pairs of id and payload, in order.
        on_submit: Called, and awaited where it is asynchronous, inside each ``submit``; may raise.
    """

    def __init__(self, on_submit: Callable[[str, Any], Awaitable[None] | None] | None = None) -> None:
        self.submitted: list[tuple[str, Any]] = []
        self.on_submit = on_submit
        self._outputs: Mailbox[StageOutput] = Mailbox()
        self._death: BaseException | None = None

    def put(self, request_id: str, data: Any = None, finished: bool = False, **more: Any) -> None:  # noqa: FBT001, FBT002 — as StageOutput takes it
        """Have the stage put out an output."""
        self._outputs.put(StageOutput(request_id, data, finished, **more))

    def die(self, error: BaseException) -> None:
        """Have ``get_output`` raise from now on."""
        self._death = error
        self._outputs.put(StageOutput(""))

    async def submit(self, request_id: str, payload: Any, /) -> None:
        """Note the submission."""
        self.submitted.append((request_id, payload))
        result = self.on_submit(request_id, payload) if self.on_submit is not None else None
        if result is not None:
            await result

    async def get_output(self) -> Sequence[StageOutput]:
        """Return what the test put since the last call."""
        outputs = await self._outputs.take()
        if self._death is not None:
            raise self._death
        return outputs


class FullClient(ScriptedClient):
    """A stage client with every optional method.

    Attributes:
        calls: The names of the optional methods that were called, with what, in order.
        credits: How many outputs of each request were taken.
        work: What `doing` says of each request.
        gate: What ``abort`` waits for, unless it is set.
        abort_error: What ``abort`` raises.
    """

    def __init__(self, on_submit: Callable[[str, Any], Awaitable[None] | None] | None = None) -> None:
        super().__init__(on_submit)
        self.calls: list[tuple[str, str]] = []
        self.credits: defaultdict[str, int] = defaultdict(int)
        self.work: dict[str, Doing] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.abort_error: Exception | None = None

    async def start(self) -> None:
        """Note the call."""
        self.calls.append(("start", ""))

    async def close(self) -> None:
        """Note the call."""
        self.calls.append(("close", ""))

    async def abort(self, request_id: str) -> None:
        """Note the call, then wait for the gate."""
        self.calls.append(("abort", request_id))
        await self.gate.wait()
        if self.abort_error is not None:
            raise self.abort_error

    def credit(self, request_id: str, count: int) -> None:
        """Count."""
        self.credits[request_id] += count

    def doing(self, request_id: str) -> Doing:
        """Return what the test says that the stage does."""
        return self.work.get(request_id, "running")


async def take_all(orchestrator: Orchestrator, timeout: float = 1.0) -> list[OrchOutput]:
    """Return every output until there is none for ``timeout`` seconds; for virtual time."""
    outputs: list[OrchOutput] = []
    while True:
        try:
            outputs.append(await orchestrator.next_output(timeout))
        except TimeoutError:
            return outputs


class DrivenPipeline:
    """A `stagewire.Pipeline` whose run is what a test does with its orchestrator.

    Args:
        options: The sections of the file.
        context: What the App offers.
        drive: Called with the started orchestrator; the run ends with it.
    """

    def __init__(
        self, options: OrchestratorOptions, context: BuildContext, drive: Callable[[Orchestrator], Awaitable[None]]
    ) -> None:
        self._options = options
        self._drive = drive
        self._orchestrator = build(options, context)

    def graph(self) -> str:
        """Return the pipeline as a Mermaid flowchart."""
        return flowchart(self._options)

    async def run(self, job: Job) -> RunReport:  # noqa: ARG002 — the test has its own inputs
        """Start, and let the test drive."""
        await self._orchestrator.start()
        await self._drive(self._orchestrator)
        return RunReport()

    async def prepare_shutdown(self) -> None:
        """Do nothing: the test ends its run itself."""

    async def shutdown(self) -> None:
        """Shut the orchestrator down."""
        await self._orchestrator.shutdown()


def driven(config: Any, drive: Callable[[Orchestrator], Awaitable[None]]) -> Any:
    """Return a loaded configuration that `App.run` runs by calling ``drive`` with the started orchestrator."""

    def make(options: OrchestratorOptions, context: BuildContext) -> DrivenPipeline:
        return DrivenPipeline(options, context, drive)

    return replace(config, kind=replace(config.kind, factory=make))
