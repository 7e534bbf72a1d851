"""The pipeline kind ``csp``: what the App builds from YAML and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from stagewire import (
    BuildContext,
    Consumer,
    Job,
    Metric,
    OutputFile,
    Producer,
    Progress,
    Requester,
    RunReport,
    StageBlock,
    StageContext,
)
from stagewire.lifecycle import Phases
from stagewire_csp.capacity import Capacity
from stagewire_csp.metrics import metrics_of
from stagewire_csp.options import CspOptions
from stagewire_csp.roles import Writes
from stagewire_csp.runtime import CspRuntime
from stagewire_csp.snapshot import Snapshot
from stagewire_csp.view import Pace, render


class _Role(Protocol):
    async def open(self, context: StageContext) -> None: ...

    async def close(self) -> None: ...


class CspPipeline:
    """Opens the three roles, runs them in a `CspRuntime`, and closes them. One object per role serves all its workers.

    Args:
        options: The file's sections, resolved.
        capacity: The capacities.
        context: What the App offers.
    """

    def __init__(self, options: CspOptions, capacity: Capacity, context: BuildContext) -> None:
        self._options = options
        self._context = context
        self._producer: Producer = _build(options.t, context)
        self._requester: Requester = _build(options.q, context)
        self._consumer: Consumer = _build(options.c, context)
        self._observe: Callable[[Progress], None] = lambda _progress: None
        self._pace = Pace()
        self._opened: list[str] = []
        self.runtime = CspRuntime(
            self._producer,
            self._requester,
            self._consumer,
            capacity=capacity,
            settings=options.settings(),
            clock=context.clock,
            log=context.log,
            on_beat=self._show,
        )
        """The runtime, for whoever watches it."""
        steps = [(f"close {name}", partial(self._close_role, name, role)) for name, role in reversed(self._roles())]
        self._ending = Phases("csp pipeline", [("end the workers", self.runtime.close), *steps])

    def graph(self) -> str:
        """Return the pipeline as a Mermaid flowchart."""
        return "\n".join(_chart(self._options, self.runtime.capacity)) + "\n"

    def metrics(self) -> Iterator[Metric]:
        """Return the live state as metrics (CSP-16)."""
        last = self.runtime.monitor.last
        return metrics_of(self.runtime.snapshot(), None if last is None else last.lateness)

    async def run(self, job: Job) -> RunReport:
        """Open the roles, run until a source ends or the stop, close the roles; return the account.

        Raises:
            PhaseFailed: A role failed to close, or a worker did not end although it was cancelled.
        """
        self._observe = job.observe
        await self._open_roles(job)
        report = await self.runtime.run()
        self._show(report.state)
        await self._ending.run()
        return report.run_report(self._outputs())

    async def prepare_shutdown(self) -> None:
        """Begin nothing more; what was begun may end within the deadline."""
        self.runtime.stop()

    async def shutdown(self) -> None:
        """End the workers and close the roles. Idempotent, also when `run` never ran."""
        await self._ending.run()

    def _roles(self) -> list[tuple[str, _Role]]:
        return [("t", self._producer), ("q", self._requester), ("c", self._consumer)]

    async def _open_roles(self, job: Job) -> None:
        for name, role in self._roles():
            self._opened.append(name)  # before it opens: half of an open is to be closed too
            await role.open(
                StageContext(
                    stage=name,
                    replica=0,
                    base=self._context.base,
                    log=self._context.log.bind(stage=name),
                    input_directory=job.input_directory,
                    output_directory=job.output,
                )
            )

    def _outputs(self) -> list[OutputFile]:
        return [file for _, role in self._roles() if isinstance(role, Writes) for file in role.outputs()]

    async def _close_role(self, name: str, role: _Role) -> None:
        if name in self._opened:
            await role.close()

    def _show(self, state: Snapshot) -> None:
        counters = {
            "pairs": state.pairs,
            "T in stock": state.t.depth,
            "Q in stock": state.q.depth,
            "requests in flight": state.requests.in_flight,
            "failures": sum(state.failures.values()),
        }
        last = self.runtime.monitor.last
        findings = () if last is None else last.findings
        view = partial(render, state, findings, self._pace.at(state))
        self._observe(Progress(counters=counters, view=view))


def _build(block: StageBlock, context: BuildContext) -> Any:
    return block.provider.factory(block.options, context)


def _chart(options: CspOptions, capacity: Capacity) -> Iterator[str]:
    yield "flowchart LR"
    yield f'    t["t: {options.t.use}<br/>physical {capacity.physical}"]'
    yield f'    q["q: {options.q.use}<br/>physical {capacity.physical}, pending {capacity.q_pending}"]'
    yield '    pair{"pair"}'
    yield f'    c["c: {options.c.use}<br/>physical {capacity.physical}"]'
    yield f'    t -- "T, {capacity.t_slot} slots" --> pair'
    yield f'    q -- "Q, {capacity.q_slot} slots" --> pair'
    yield "    pair --> c"
