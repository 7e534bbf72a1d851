"""One run of one pipeline: opens the backends that were built, works, and stops everything in the order of SD-5."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import stagewire
from stagewire.assembly import Assembly, Backend
from stagewire.errors import ConfigError, StagewireError, StillHeld, describe
from stagewire.events import emit
from stagewire.lifecycle import Closer, Module, StopSignal, TaskRegistry, shutdown_phases
from stagewire.metrics.served import metrics_served
from stagewire.probing import probe
from stagewire.spec.pipeline import Failure, Job, RunReport, Telling
from stagewire.spec.probe import traffic_of
from stagewire.spec.transport import TRANSPORT_STATS

GRACE = 5.0
"""Seconds that everything has to end once the caller cancelled it, before it is left to its fate."""

LAST = 1.0
"""The same where the deadline of a stop has passed: it was given time before."""

MOST_EDGES = 200
"""Edges and mailboxes whose traffic is told at the end of a run."""


class Running:
    """Runs an assembly once. Belongs to the event loop on which `run` is called.

    Whatever happens (the work ends, fails, is asked to stop, or the caller is cancelled), the same shutdown follows:
    admission closes, the work inside ends, then the pipeline, its leases, its KV backend and its transport are let go
    of, and every task is joined. A step that fails is tried again until the deadline.

    Args:
        assembly: What to run.
        stop: Asks for the stop; may be set by anybody at any time.
        deadline: Seconds that the shutdown may take.
    """

    def __init__(self, assembly: Assembly, stop: StopSignal, deadline: float) -> None:
        assembly.seal()
        self._assembly = assembly
        self._asked = stop
        self._deadline = deadline
        self._name = f"pipeline {assembly.pipeline!r}"
        self._tasks = TaskRegistry(self._name, log=assembly.log)
        self._opening: asyncio.Task[None] | None = None
        self._work: asyncio.Task[RunReport] | None = None
        self._opened: set[str] = set()
        self._phases = shutdown_phases(
            f"shutdown of {self._name}",
            stop=StopSignal(),
            modules=list(self._modules()),
            tasks=self._tasks,
            grace=GRACE,
        )
        self._closer = Closer(self._phases.run, name=self._name, held=self._held, log=assembly.log)

    def waiting_for(self) -> str:
        """Say what has not ended, for a person who asked for the stop and waits."""
        if self._work is not None and not self._work.done():
            product = self._assembly.product
            what = product.waiting_for() if isinstance(product, Telling) else None
            return what or f"{self._name} to finish the work inside"
        return next(iter(self._held()), "the last tasks to end")

    @property
    def report(self) -> RunReport:
        """What the work has come to, once `run` has ended, in whatever way."""
        work = self._work
        cut = work is None or not work.done() or work.cancelled() or work.exception() is not None
        return RunReport(stopped=True) if work is None or cut else work.result()

    async def run(self, job: Job) -> RunReport:
        """Run the job and shut down. A shutdown that does not succeed by the deadline is a failure in the report.

        Cancelling cuts the work short; the shutdown then takes at most ``GRACE`` seconds more, or ``LAST`` when a stop
        was under way.

        Raises:
            StagewireError: A backend cannot be opened, or what the pipeline raised; after the shutdown.
        """
        began = self._assembly.clock()
        self._assembly.open_log()
        try:
            with metrics_served(self._assembly):
                report = await self._work_and_close(job)
        except Exception as error:
            self._emit_failed(error)
            raise
        else:
            self._emit_finished(report, self._assembly.clock() - began)
            return report
        finally:
            self._assembly.close_log()

    async def _work_and_close(self, job: Job) -> RunReport:
        self._work = self._tasks.spawn(self._do(job), name=f"run of {self._name}", report=False)
        asked = self._tasks.spawn(self._asked.wait(), name="wait for a stop", report=False)
        try:
            await asyncio.wait([self._work, asked], return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            held = await self._close()
        except asyncio.CancelledError:
            await self._cut_short()
            raise
        if held is not None:
            await self._cut_short()
        return self._outcome(self._work, held)

    async def _do(self, job: Job) -> RunReport:
        self._opening = self._tasks.spawn(self._open(), name="opening", report=False)
        await asyncio.wait([self._opening])
        if self._opening.cancelled():
            return RunReport(stopped=True)
        self._opening.result()
        kind = self._assembly.config.kind.name
        emit(self._assembly.log, "app.started", version=stagewire.__version__, kind=kind)
        try:
            return await self._assembly.product.run(job)
        except ConfigError as error:
            raise self._assembly.config.document.placed(error) from error

    async def _open(self) -> None:
        traffic = traffic_of(self._assembly.product)
        for name, backend in self._assembly.backends.items():
            try:
                await probe(name, backend, traffic)
                self._opened.add(name)  # before it opens: half of an open is to be closed too
                await backend.open()
            except StagewireError as error:
                error.while_opening = True
                raise
            except Exception as error:
                fault = StagewireError(f"{name} could not be opened: {describe(error)}")
                fault.while_opening = True
                raise fault from error

    async def _close(self) -> StillHeld | None:
        try:
            await self._closer.close(timeout=self._deadline, persist=True)
        except StillHeld as held:
            return held
        return None

    async def _cut_short(self) -> None:
        """Cancel what is left and give it its last seconds; a cancel meanwhile is raised after them."""
        grace = LAST if self._closer.requested else GRACE
        self._tasks.cancel_all()
        cancelled: asyncio.CancelledError | None = None
        ending = asyncio.ensure_future(self._closer.close(timeout=grace, persist=True))
        while not ending.done():
            try:
                await asyncio.wait([ending])
            except asyncio.CancelledError as error:
                cancelled = error
        with suppress(StillHeld, asyncio.CancelledError):
            ending.result()
        if cancelled is not None:
            raise cancelled

    def _modules(self) -> Iterator[Module]:
        """What the shutdown goes through, in its order: whoever uses another comes before it."""
        product = self._assembly.product
        yield Module(name="opening", prepare=self._stop_opening)
        yield Module(
            name=self._name,
            prepare=product.prepare_shutdown,
            before=self._work_ended,
            shutdown=product.shutdown,
        )
        for name, backend in reversed(list(self._assembly.backends.items())):
            yield Module(name=name, shutdown=partial(self._close_backend, name, backend))

    async def _stop_opening(self) -> None:
        if self._opening is not None:
            self._opening.cancel()

    async def _work_ended(self) -> None:
        if self._work is not None:
            await asyncio.wait([self._work])

    async def _close_backend(self, name: str, backend: Backend) -> None:
        if name in self._opened:
            await backend.close()

    def _held(self) -> tuple[str, ...]:
        return self._phases.remaining

    def _outcome(self, work: asyncio.Task[RunReport], held: StillHeld | None) -> RunReport:
        if held is None and work.cancelled():
            raise StagewireError(
                f"{self._name} was cancelled from inside: its run lets a CancelledError of its own out"
            )
        cut = held is not None and (not work.done() or work.cancelled())
        report = RunReport(stopped=True) if cut else work.result()
        if not isinstance(report, RunReport):
            raise StagewireError(f"{self._name} returned {type(report).__name__} from run; a RunReport is due")
        if held is None:
            return report
        failure = Failure(subject="shutdown", stage=self._assembly.pipeline, cause=str(held))
        return replace(report, failures=[*report.failures, failure])

    def _emit_failed(self, error: Exception) -> None:
        unforeseen = not isinstance(error, StagewireError)
        # A person at a terminal is told in a line; the trace is for whoever reads the log afterwards.
        trace = error if unforeseen and not self._assembly.log_is_read_as_it_comes else None
        emit(self._assembly.log, "app.failed", cause=describe(error), exc_info=trace)

    def _emit_traffic(self) -> None:
        """Say what went over each edge and mailbox; a transport that cannot tell is no fault of the run."""
        with suppress(Exception):
            for edge, counters in sorted(self._assembly.traffic().items())[:MOST_EDGES]:
                if not (counters["puts"] or counters["gets"]):
                    continue
                counted = {name: round(counters[name], 6) for name in TRANSPORT_STATS}
                emit(self._assembly.log, "transport.stats", edge=edge, **counted)

    def _emit_finished(self, report: RunReport, seconds: float) -> None:
        self._emit_traffic()
        emit(
            self._assembly.log,
            "app.finished",
            seconds=round(seconds, 3),
            outputs=len(report.outputs),
            failures=len(report.failures),
            stopped=report.stopped,
        )
