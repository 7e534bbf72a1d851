"""The pipeline kind ``orchestrator``: one run is one request, whose prompt is the input and whose outputs are files."""

from __future__ import annotations

import asyncio
from typing import Any

from stagewire import BuildContext, Failure, Job, OutputFile, RunReport, Traffic
from stagewire.lifecycle import StopSignal
from stagewire_orchestrator.assembly import build
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.inputs import RunInput
from stagewire_orchestrator.mermaid import flowchart
from stagewire_orchestrator.outputs import OrchOutput, Terminal
from stagewire_orchestrator.run_watch import RunWatch
from stagewire_orchestrator.sinks import OutputFailed, Sinks
from stagewire_orchestrator.traffic import traffic_of_edges
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

    def graph(self) -> str:
        """Return the pipeline as a Mermaid flowchart."""
        return flowchart(self._options)

    def traffic(self) -> Traffic:
        """Return the links of its chunk edges."""
        return traffic_of_edges(self._options)

    async def run(self, job: Job) -> RunReport:
        """Run the job: one request, from the input to the files. What failed is in the report, not raised."""
        sinks = Sinks(job.output, self._options.outputs, self._wav_limit)
        watch = RunWatch(job)
        try:
            failures = await self._work(job, sinks, watch)
        finally:
            files = await asyncio.shield(sinks.close())
        return self._report(files, failures, watch)

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
        except OutputFailed as error:
            return [Failure(REQUEST, str(error.stage), str(error))]
        await self._orchestrator.start()
        prompt = None if job.input is None else RunInput(job.input, self._stop, watch.read)
        await self._orchestrator.add_request(REQUEST, prompt)
        try:
            last = await self._carry(sinks, watch)
            await sinks.finish()
        except OutputFailed as error:
            if await self._orchestrator.abort(REQUEST):
                await self._orchestrator.next_output()  # its CANCEL: nobody else takes it
            return [Failure(REQUEST, str(error.stage), str(error))]
        if last.error is not None:
            return [Failure(REQUEST, str(last.error.stage), last.error.cause)]
        if last.terminal is Terminal.CANCEL and not self._stop.is_set:
            return [Failure(REQUEST, "", "the request was cancelled")]
        return []

    async def _carry(self, sinks: Sinks, watch: RunWatch) -> OrchOutput:
        """Carry every output to its file; returns the last one."""
        loop = asyncio.get_running_loop()
        flushed = loop.time()
        while True:
            try:
                output = await self._orchestrator.next_output(FLUSH_EVERY)
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

    def _report(self, files: list[OutputFile], failures: list[Failure], watch: RunWatch) -> RunReport:
        stopped = self._stop.is_set
        complete = not failures and not stopped
        rows = [("result", "complete" if complete else _incomplete(stopped=stopped, files=bool(files)))]
        details: dict[str, Any] = {"complete": complete, **watch.details(), "stats": self._orchestrator.stats()}
        return RunReport(files, failures, [*rows, *watch.rows()], details, stopped=stopped)


def _incomplete(*, stopped: bool, files: bool) -> str:
    what = "stopped" if stopped else "failed"
    return f"{what}; the files hold what there was until then" if files else what
