"""A stage of this process, as a stage client (OR-15): what a remote one does by messages, this one does by tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from stagewire import RequestFailed, Stage, StageContext, StageId, StagewireError, StillHeld, describe
from stagewire.lifecycle import TaskRegistry
from stagewire_orchestrator.clients import Doing, Submission
from stagewire_orchestrator.feeds import EdgeFailed, Feeds
from stagewire_orchestrator.graph import Node
from stagewire_orchestrator.kept import KeptEnd
from stagewire_orchestrator.links import InEnd, OnFailed, OutEnd
from stagewire_orchestrator.local_run import LocalRun
from stagewire_orchestrator.mailbox import Mailbox
from stagewire_orchestrator.outputs import Mark, StageOutput
from stagewire_orchestrator.tasks import own_task
from stagewire_orchestrator.windows import Window

GRACE = 5.0
"""Seconds that the requests in a stage have to end once they were cancelled."""

RAISED = (Exception, SystemExit, KeyboardInterrupt)
"""What a stage may raise: ``sys.exit`` in it is no end of the program, and Ctrl-C comes as a signal, not to a stage."""

MakeIns = Callable[[], Sequence[InEnd]]
"""Makes the receiving ends of a replica's chunk edges; on the event loop, when the replica starts; an
entry, to which only streams come over such an edge, makes them for the first of those."""

MakeOuts = Callable[[OnFailed], Mapping[tuple[StageId, int], OutEnd]]
"""Makes its sending ends, one for each replica of each successor."""


class LocalClient:
    """Hosts one replica of a stage: one task for each request.

    Args:
        stage: The stage; opened by `start` and closed by `close`.
        node: Its place in the graph.
        context: What it is opened with.
        make_ins: See `MakeIns`.
        make_outs: See `MakeOuts`.
        make_window: Makes the window of one request's outputs to the orchestrator.
        marks: Whether another worker may go on with its requests, so that outputs must tell where they stand.
    """

    def __init__(
        self,
        stage: Stage,
        node: Node,
        context: StageContext,
        *,
        make_ins: MakeIns,
        make_outs: MakeOuts,
        make_window: Callable[[], Window],
        marks: bool = False,
    ) -> None:
        self._stage = stage
        self._node = node
        self._context = context
        self._make_ins = make_ins
        self._make_outs = make_outs
        self._make_window = make_window
        self._marks = marks
        self._ins: Sequence[InEnd] = ()
        self._outs: Mapping[tuple[StageId, int], OutEnd] = {}
        self._runs: dict[str, LocalRun] = {}
        self._outputs: Mailbox[StageOutput] = Mailbox()
        self._tasks = TaskRegistry(f"stage {node.id!r}", log=context.log)
        self._opened = False

    async def start(self) -> None:
        """Open the stage. Raises `StagewireError` naming it."""
        try:
            await self._stage.open(self._context)
        except RAISED as error:
            raise StagewireError(f"stage {self._node.id!r} could not be opened: {describe(error)}") from error
        self._opened = True
        if not self._node.entry:
            self._ins = self._make_ins()
        self._outs = self._make_outs(self._edge_failed)

    async def submit(self, request_id: str, payload: Submission, /) -> None:
        """Begin a request; returns at once."""
        if payload.streamed and not self._ins:
            self._ins = self._make_ins()
        run = self._make_run(payload)
        self._runs[request_id] = run
        name = None if payload.resume is None else payload.resume.edge_wire
        if run.feeds is not None:
            run.feeds.feeds = [end.receive(request_id, run.feeds.news, name) for end in self._ins]
        run.task = self._tasks.spawn(self._work(run), name=f"{self._node.id} {request_id}")

    async def get_output(self) -> Sequence[StageOutput]:
        """Return what the requests put out since the last call; waits until there is something."""
        return await self._outputs.take()

    async def abort(self, request_id: str) -> None:
        """Cancel the request here and on the edges; returns once nothing of it is left."""
        run = self._runs.pop(request_id, None)
        if run is not None and run.task is not None:
            await self._stop(run, run.task)
        for end in self._outs.values():
            if isinstance(end, KeptEnd):
                end.drop(request_id)
        await asyncio.gather(*(end.forget(request_id) for end in self._ins))

    def has(self, wire: str) -> bool:
        """Return whether the request runs here."""
        return wire in self._runs

    async def move(self, wire: str, source: StageId, edge_wire: str) -> Mark | bool:
        """Take the rest of a request's chunks from ``source`` under another id (see `InEnd.move`).

        Returns the mark of the last chunk that arrived, ``True`` when none has, ``False`` when no more are wanted.
        """
        for end in self._ins:
            if end.edge.source == source and wire in self._runs:
                feed = end.move(wire, edge_wire)
                return False if feed is None else feed.mark or True
        return False

    async def resend(self, wire: str, target: StageId, replica: int, edge_wire: str, start: int) -> None:
        """Send a request's chunks to ``target`` again, from number ``start`` on, under another id.

        Raises:
            RequestFailed: They are not kept any more.
        """
        end = self._outs.get((target, replica))
        if not isinstance(end, KeptEnd):
            raise RequestFailed(wire, self._node.id, f"its chunks for {target!r} are not kept")
        end.check(wire, start, begun=wire in self._runs)
        self._tasks.spawn(end.resend(wire, edge_wire, start), name=f"{end.edge.name} {wire} again")

    def retire(self, wire: str, target: StageId, replica: int, upto: int) -> None:
        """Forget the chunks for ``target`` before number ``upto``: they will not be asked for again."""
        end = self._outs.get((target, replica))
        if isinstance(end, KeptEnd):
            end.retire(wire, upto)

    async def drain(self, wire: str) -> None:
        """Drop what is left on the edges of a request under an id that was given up."""
        await asyncio.gather(*(end.drain(wire) for end in self._ins))

    def used(self) -> dict[str, dict[StageId, int]]:
        """Return for each request which input of each source, counted in that source's inputs, it needs at least."""
        used: dict[str, dict[StageId, int]] = {}
        for wire, run in self._runs.items():
            marks = {feed.source: feed.mark.input for feed in run.feeds.feeds if feed.mark} if run.feeds else {}
            if marks:
                used[wire] = marks
        return used

    def credit(self, request_id: str, count: int) -> None:
        """So many outputs of the request were taken: it may put out more."""
        run = self._runs.get(request_id)
        if run is not None and run.window is not None:
            run.window.release(count)

    def doing(self, request_id: str) -> Doing:
        """Return what the request does here."""
        run = self._runs.get(request_id)
        return run.doing if run is not None else "running"

    def moves(self, request_id: str) -> int:
        """Return how many chunks of the request came in or went out here."""
        run = self._runs.get(request_id)
        return run.moves if run is not None else 0

    async def close(self) -> None:
        """Cancel what is left, stop the edges, close the stage."""
        for run in self._runs.values():
            run.over = True
        held: StillHeld | None = None
        try:
            self._tasks.cancel_all()
            await self._tasks.drain(GRACE)
        except StillHeld as error:
            held = error
        for run in self._runs.values():
            run.cancel()
        await asyncio.gather(*(end.close() for end in (*self._outs.values(), *self._ins)))
        self._runs.clear()
        if self._opened:
            self._opened = False
            await self._close_stage()
        if held is not None:
            raise held

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the sizes of its tables, and what its ends of chunk edges did."""
        ends = {f"edge {end.edge.name}": end.stats() for end in self._ins}
        for (_target, replica), end in self._outs.items():
            ends[f"edge {end.edge.name}/{replica}"] = end.stats()
        return {"requests": {"running": len(self._runs), "outputs": len(self._outputs)}, **ends}

    async def _close_stage(self) -> None:
        try:
            await self._stage.close()
        except (SystemExit, KeyboardInterrupt) as error:
            raise StagewireError(f"stage {self._node.id!r} could not be closed: {describe(error)}") from error

    @property
    def running(self) -> Mapping[str, tuple[Doing, int]]:
        """What each request does here, and how many chunks of it came in or went out."""
        return {wire: (run.doing, run.moves) for wire, run in self._runs.items()}

    def _make_run(self, submission: Submission) -> LocalRun:
        node = self._node
        outs = self._outs_of(submission)
        window = self._make_window() if node.final or node.batch_targets else None
        run = LocalRun(submission, outs=outs, route=node.route, window=window, outputs=self._outputs, marks=self._marks)
        if node.chunked or submission.streamed:
            run.feeds = Feeds(node.join, run.starved)
        return run

    def _outs_of(self, submission: Submission) -> dict[StageId, OutEnd]:
        outs = {target: self._outs[target, replica] for target, replica in submission.receivers.items()}
        resume = submission.resume
        if resume is None:
            return outs
        wanted = {target: end for target, end in outs.items() if target in resume.have}
        for target, end in wanted.items():
            if isinstance(end, KeptEnd):
                end.begin(submission.wire_id, resume.edge_wire, resume.have[target])
            else:
                end.rename(submission.wire_id, resume.edge_wire)
        return wanted

    async def _stop(self, run: LocalRun, task: asyncio.Task[None]) -> None:
        run.over = True
        task.cancel()
        try:
            await asyncio.wait([task])
        finally:
            run.cancel()

    async def _work(self, run: LocalRun) -> None:
        wire = run.submission.wire_id
        error: BaseException | None = None
        try:
            await run.work(self._stage)
            run.finish()
            await run.sent()
        except asyncio.CancelledError as cancelled:
            if run.failure is None and own_task().cancelling():
                raise
            error = run.failure or cancelled
        except RAISED as failure:  # it fails its request only (OR-10)
            error = failure
        if error is not None:
            run.cancel()
        if self._runs.get(wire) is run:
            del self._runs[wire]
        self._outputs.put(StageOutput(wire, None, finished=True, has_data=False, error=self._named(run, error)))

    def _named(self, run: LocalRun, error: BaseException | None) -> BaseException | None:
        if isinstance(error, EdgeFailed):
            return RequestFailed(run.submission.request_id, self._node.id, f"its input: {error}")
        return error

    def _edge_failed(self, wire: str, error: Exception) -> None:
        run = self._runs.get(wire)
        if run is not None:
            run.fail(RequestFailed(run.submission.request_id, self._node.id, f"its output: {describe(error)}"))
