"""The pipeline kind ``write-session``: what the App builds from YAML and runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagewire import BuildContext, Failure, Job, OutputFile, Progress, RunReport, StagewireError, describe
from stagewire.lifecycle import Phases, StopSignal
from stagewire_writes.agent import WriteAgent
from stagewire_writes.controller import WriteController
from stagewire_writes.hybrid import HybridWriter
from stagewire_writes.options import ExportOptions, WritesOptions
from stagewire_writes.outgoing import SessionProgress

if TYPE_CHECKING:
    from stagewire_writes.protocol import Written

EMBEDDED = "embedded"
"""The name of the agents in the process of the controller."""

Work = Callable[["WritePipeline"], Awaitable[RunReport]]


@dataclass(frozen=True, slots=True)
class WriteJob(Job):
    """A job that says itself what to do, as the commands' do.

    Attributes:
        work: Does it; cancelled by a stop.
        agent: Serve this export here and under this node's name, and have no controller.
    """

    work: Work | None = None
    agent: tuple[str, str | None] | None = None


class WritePipeline:
    """Opens the agents that are embedded and a controller, does its job, and closes all of it.

    A plain run with an input writes it to ``put``; one without serves the embedded agents until it is stopped.

    Args:
        options: The file's sections.
        context: What the App offers.
    """

    def __init__(self, options: WritesOptions, context: BuildContext) -> None:
        exports = {name: _located(export, context) for name, export in options.exports.items()}
        self.options = options.model_copy(update={"exports": exports})
        """The sections, with paths that no longer depend on where the file is."""
        self._context = context
        self._transport = context.transport()
        self._kv = context.kv()
        self._leases = context.lease()
        self._stop = StopSignal()
        self._agents: list[WriteAgent] = []
        self._controller: WriteController | None = None
        self._ending = Phases(
            "write-session",
            [("close the controller", self._close_controller), ("close the agents", self._close_agents)],
        )

    @property
    def controller(self) -> WriteController:
        """The controller; there is one while a job runs that needs one."""
        assert self._controller is not None, "asked for during a job"
        return self._controller

    def graph(self) -> str:
        """Return the pipeline as a Mermaid flowchart."""
        return "\n".join(_chart(self.options)) + "\n"

    async def run(self, job: Job) -> RunReport:
        """Do the job; a stop cancels it, which gives up what is being written.

        Raises:
            StagewireError: What failed; the old files are whole in ``atomic`` mode.
        """
        if isinstance(job, WriteJob) and job.agent is not None:
            export, node = job.agent
            await self._start_agent(export, node)
            return await self._serve()
        await self._start_embedded()
        self._controller = self._made(WriteController, self.options)
        if isinstance(job, WriteJob) and job.work is not None:
            return await self._unless_stopped(job.work(self))
        if job.input is None:
            return await self._serve()
        return await self._unless_stopped(self._put(job))

    async def prepare_shutdown(self) -> None:
        """Cut the job short."""
        self._stop.set("shutdown")

    async def shutdown(self) -> None:
        """Close the controller, then the agents. Idempotent, also when `run` never ran."""
        await self._ending.run()

    async def _start_embedded(self) -> None:
        if self.options.agents == EMBEDDED:
            for name in self.options.exports:
                await self._start_agent(name, EMBEDDED)

    async def _start_agent(self, export: str, node: str | None) -> None:
        agent = self._made(
            WriteAgent,
            export,
            self.options.exports[export],
            node=node,
            session=self.options.session,
            deadline=self.options.deadline,
        )
        self._agents.append(agent)  # before it starts: half of a start is to be closed too
        await agent.start()

    def _made(self, kind: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return kind(
            *arguments,
            batches=self._transport.batches(),
            kv=self._kv,
            leases=self._leases,
            clock=self._context.clock,
            log=self._context.log,
            **options,
        )

    async def _serve(self) -> RunReport:
        await self._stop.wait()
        return RunReport(stopped=True)

    async def _unless_stopped(self, work: Awaitable[RunReport]) -> RunReport:
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        return RunReport(stopped=True) if task.cancelled() else task.result()

    async def _put(self, job: Job) -> RunReport:
        assert job.input is not None, "asked before"
        if self.options.put is None:
            raise StagewireError("there is an input and no `put`: say in the configuration where it goes, EXPORT/PATH")
        export, path = split(self.options.put)
        writer = HybridWriter(self.controller, export, path, observe=observer(job.observe, job.input.size))
        try:
            async for block in job.input:
                await writer.write(block)
            written = await writer.finish()
        except StagewireError as error:
            await writer.abort()
            return RunReport(failures=[Failure(self.options.put, export, describe(error))])
        except BaseException:
            await writer.abort()
            raise
        return self._report(export, path, written, writer)

    def _report(self, export: str, path: str, written: Written, writer: HybridWriter) -> RunReport:
        way = "small put" if writer.session is None else writer.session.progress.path
        target = self.options.exports[export].root / path
        return RunReport(
            outputs=[OutputFile(target, export, 1, written.size)],
            rows=[("written", f"{export}/{path}"), ("bytes", f"{written.size:,}"), ("payload", way)],
            details={"export": export, "path": path, "size": written.size, "mtime": written.mtime, "payload": way},
        )

    async def _close_controller(self) -> None:
        if self._controller is not None:
            await self._controller.close()

    async def _close_agents(self) -> None:
        for agent in self._agents:
            await agent.close()


def split(place: str) -> tuple[str, str]:
    """Return export and path of ``EXPORT/PATH``."""
    export, _slash, path = place.partition("/")
    return export, path


def observer(observe: Callable[[Progress], None], total: int | None) -> Callable[[SessionProgress], None]:
    """Return what turns the progress of a session into that of a run (WS-20)."""

    def show(progress: SessionProgress) -> None:
        counters = {"accepted": progress.accepted, "acknowledged": progress.acknowledged}
        observe(Progress(progress.written, total, counters))

    return show


def _located(export: ExportOptions, context: BuildContext) -> ExportOptions:
    return export.model_copy(update={"root": context.base / export.root})


def _chart(options: WritesOptions) -> Iterator[str]:
    yield "flowchart LR"
    yield '    controller["controller"]'
    for number, (name, export) in enumerate(options.exports.items()):
        yield f'    agent{number}["{options.agents} agent: {name}<br/>{export.mode}"]'
        yield f'    controller -- "{options.session.payload}" --> agent{number}'
        yield f'    agent{number} --> tree{number}[("{export.root.name or export.root}")]'
