"""The pipeline kind ``orchestrator``: one run is one request, whose prompt is the input and whose outputs are files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from stagewire import BuildContext, Failure, Job, Metric, OutputFile, RunReport, Traffic
from stagewire.lifecycle import StopSignal
from stagewire_orchestrator.assembly import build
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.inputs import NoInput, RunInput
from stagewire_orchestrator.mermaid import flowchart
from stagewire_orchestrator.outputs import OrchOutput, Terminal
from stagewire_orchestrator.run_watch import RunWatch
from stagewire_orchestrator.sinks import OutputFailed, Sinks
from stagewire_orchestrator.traffic import traffic_of_edges
from stagewire_orchestrator.watch import at_work
from stagewire_orchestrator.wav import LIMIT

REQUEST = "run"
"""The id of a run's one request."""

FLUSH_EVERY = 0.2
"""Seconds after which what waits for a file is written, although it is little."""


class OrchestratorPipeline:
    """A `stagewire.Pipeline`.

    Args:
        options: The sections of the file.
        context: What the App offers.
        wav_limit: The most bytes of sound of a wav file.
    """

    def __init__(self, options: OrchestratorOptions, context: BuildContext, *, wav_limit: int = LIMIT) -> None:
        self._options = options
        self._orchestrator = build(options, context)
        self._wav_limit = wav_limit
        self._stop = StopSignal()
        self._over = False

    def graph(self) -> str:
        """Return the pipeline as a Mermaid flowchart."""
        return flowchart(self._options)

    def metrics(self) -> Iterator[Metric]:
        """Return the orchestrator's counters and live sizes (OR-18)."""
        return self._orchestrator.metrics()

    def traffic(self) -> Traffic:
        """Return the links of its chunk edges."""
        return traffic_of_edges(self._options)

    async def run(self, job: Job) -> RunReport:
        """Run the job: one request, from the input to the files. What failed is in the report, not raised.

        Raises:
            ConfigError: An output is the input itself.
        """
        sinks = Sinks(job.output, self._options.outputs, self._wav_limit)
        watch = RunWatch(job)
        try:
            if job.input is not None:
                sinks.spare(job.input)
            failures = await self._work(job, sinks, watch)
        except asyncio.CancelledError:
            if not self._stop.is_set:
                raise
            failures = []  # the deadline of a stop has passed: say what there is
        finally:
            files = await asyncio.shield(sinks.close())
        failures += [Failure(REQUEST, str(error.stage), str(error)) for error in sinks.failures]
        return self._report(files, failures, watch)

    def waiting_for(self) -> str | None:
        """Name the stages that are at work."""
        stages = [stage for state in self._orchestrator.request_states.values() for stage in at_work(state)]
        names = ", ".join(repr(stage) for stage in dict.fromkeys(stages))
        return f"stage {names}" if names else None

    async def prepare_shutdown(self) -> None:
        """Read no more input; what was read is worked off."""
        self._stop.set("shutdown")

    async def shutdown(self) -> None:
        """Stop every task and thread, and close the stages (OR-8). Idempotent, also when `run` never ran."""
        self._stop.set("shutdown")
        await self._orchestrator.shutdown()

    async def _work(self, job: Job, sinks: Sinks, watch: RunWatch) -> list[Failure]:
        try:
            await sinks.open()
        except OutputFailed:
            return []  # it is among the sinks' failures
        await self._orchestrator.start()
        prompt = NoInput(watch.miss) if job.input is None else RunInput(job.input, self._stop, watch.read)
        await self._orchestrator.add_request(REQUEST, prompt)
        try:
            last = await self._carry(sinks, watch)
            await sinks.finish()
        except OutputFailed:
            await self._orchestrator.abort(REQUEST)
            while not self._over:
                await self._next()  # nobody else takes its terminal
            return []
        if last.error is not None:
            return [Failure(REQUEST, str(last.error.stage), last.error.cause, last.error.__cause__)]
        if last.terminal is Terminal.CANCEL and not self._stop.is_set:
            return [Failure(REQUEST, "", "the request was cancelled")]
        return []

    async def _carry(self, sinks: Sinks, watch: RunWatch) -> OrchOutput:
        """Carry every output to its file; returns the last one."""
        loop = asyncio.get_running_loop()
        flushed = loop.time()
        while True:
            try:
                output = await self._next(FLUSH_EVERY)
            except TimeoutError:
                await sinks.flush()
                watch.tell()
                continue
            if output.has_data:
                await sinks.write(output.stage_id, output.data)
                watch.put(output)
            if output.finished:
                return output
            if loop.time() - flushed > FLUSH_EVERY:
                flushed = loop.time()
                await sinks.flush()

    async def _next(self, timeout: float | None = None) -> OrchOutput:
        output = await self._orchestrator.next_output(timeout)
        self._over = output.finished
        return output

    def _report(self, files: list[OutputFile], failures: list[Failure], watch: RunWatch) -> RunReport:
        stopped = self._stop.is_set
        complete = not failures and not stopped
        rows = [("result", "complete" if complete else _incomplete(stopped=stopped, files=bool(files)))]
        details: dict[str, Any] = {"complete": complete, **watch.details(), "stats": self._orchestrator.stats()}
        return RunReport(files, failures, [*rows, *watch.rows()], details, stopped=stopped)


def _incomplete(*, stopped: bool, files: bool) -> str:
    what = "stopped" if stopped else "failed"
    return f"{what}; the files hold what there was until then" if files else what
