"""``stagewire worker``: some seats of one stage, as a pipeline of their own kind that an App runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagewire import BuildContext, Failure, Job, PluginError, RunReport, describe
from stagewire.lifecycle import StopSignal
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.mermaid import flowchart
from stagewire_orchestrator.remote.desk import Desk, Superseded
from stagewire_orchestrator.remote.names import Seat
from stagewire_orchestrator.wiring import Wiring

if TYPE_CHECKING:
    from stagewire_orchestrator.local_client import LocalClient


class WorkerPipeline:
    """A `stagewire.Pipeline` that hosts replicas of one stage until it is stopped.

    Args:
        options: The sections of the file.
        context: What the App offers.
        stage: The stage; nothing of the others is built.
        replicas: The numbers of the replicas.
        scope: What the mailboxes and edges are called by.
    """

    def __init__(
        self, options: OrchestratorOptions, context: BuildContext, stage: str, replicas: Sequence[int], *, scope: str
    ) -> None:
        self._options = options
        self._scope = scope
        self._context = context
        self._seats = [Seat(stage, number) for number in replicas]
        self._transport = context.transport()
        self._wiring = Wiring(options, context, scope)
        self._clients: list[LocalClient] = [
            self._wiring.worker_client(seat.stage, seat.replica, self._transport) for seat in self._seats
        ]
        self._desks: list[Desk] = []
        self._stop = StopSignal()

    def graph(self) -> str:
        """Return the pipeline as a Mermaid flowchart."""
        return flowchart(self._options)

    async def run(self, job: Job) -> RunReport:  # noqa: ARG002 — a worker's input comes from orchestrators
        """Serve until `prepare_shutdown`. That another worker took a seat is a failure in the report."""
        self._desks = [self._desk(seat, client) for seat, client in zip(self._seats, self._clients, strict=True)]
        results = await asyncio.gather(*(self._serve(desk) for desk in self._desks))
        failures = [failure for failure in results if failure is not None]
        served = sum(desk.served for desk in self._desks)
        rows = [("worker", ", ".join(map(str, self._seats))), ("requests", f"{served:,}")]
        return RunReport(failures=failures, rows=rows, details={"requests": served}, stopped=self._stop.is_set)

    async def prepare_shutdown(self) -> None:
        """Take no further request; those inside may end."""
        self._stop.set("shutdown")

    async def shutdown(self) -> None:
        """Cut off what is left, tell the orchestrators, and close the stage. Idempotent."""
        self._stop.set("shutdown")
        await asyncio.gather(*(desk.close() for desk in self._desks))

    async def _serve(self, desk: Desk) -> Failure | None:
        try:
            await desk.serve(self._stop)
        except PluginError:
            raise
        except Superseded as error:
            self._stop.set("superseded")
            return Failure("worker", str(desk.seat.stage), describe(error))
        return None

    def _desk(self, seat: Seat, client: LocalClient) -> Desk:
        context = self._context
        return Desk(
            self._scope,
            seat,
            client,
            node=self._wiring.graph.nodes[seat.stage],
            batches=self._transport.batches(),
            liveness=self._options.liveness,
            log=context.log,
        )
