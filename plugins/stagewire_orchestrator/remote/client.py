"""A stage in another process, as a stage client: what a local one does by tasks, this one does by messages."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from stagewire import PluginError, RequestFailed, StageId, StagewireError, TransportError, describe
from stagewire_orchestrator.clients import Doing, Submission
from stagewire_orchestrator.kept import KeptEnd
from stagewire_orchestrator.links import OnFailed, OutEnd
from stagewire_orchestrator.mailbox import Mailbox
from stagewire_orchestrator.outputs import Mark, StageOutput
from stagewire_orchestrator.prompts import prompt_chunks, streams
from stagewire_orchestrator.remote.names import Seat
from stagewire_orchestrator.remote.outputs import unpack_output
from stagewire_orchestrator.remote.protocol import (
    Abort,
    Ask,
    Command,
    Credit,
    Here,
    Left,
    Outputs,
    Released,
    Report,
    Submit,
    Told,
)

if TYPE_CHECKING:
    from stagewire_orchestrator.remote.fleet import Fleet

C = TypeVar("C", bound=Command)

MakeInput = Callable[[OnFailed], OutEnd]
"""Makes the sending end of the edge over which a stream reaches an entry stage."""

_DOING: dict[str, Doing] = {"starved": "starved", "blocked": "blocked"}


@dataclass(slots=True, eq=False)
class Bound:
    """One request that a worker has.

    Attributes:
        submission: What it was given.
        mark: The place of the last output that came here.
        outputs: How many came.
        attempts: By how many workers it was begun.
        name: The request's id on the chunk edge into the stage.
        input: The task that sends the prompt's chunks.
        retired: Before which of its inputs none will be used again.
    """

    submission: Submission
    name: str
    mark: Mark | None = None
    outputs: int = 0
    attempts: int = 1
    input: asyncio.Task[None] | None = None
    retired: int = 0


class RemoteClient:
    """One seat, whoever hosts it now. Nothing of a worker that was lost is taken for its successor's (OR-11).

    Args:
        fleet: What all remote clients of an orchestrator share.
        seat: The seat.
        make_input: See `MakeInput`; for an entry stage.
        resumable: Whether another worker may go on with the requests of one that was lost.
    """

    def __init__(
        self, fleet: Fleet, seat: Seat, *, make_input: MakeInput | None = None, resumable: bool = False
    ) -> None:
        self.seat = seat
        self.resumable = resumable
        self.bound: dict[str, Bound] = {}
        self.worker: str | None = None
        self.available = asyncio.Event()
        self.heard_at = 0.0
        self.down_since = 0.0
        self._fleet = fleet
        self._make_input = make_input
        self._input: OutEnd | None = None
        self.started = 0
        self._outputs: Mailbox[StageOutput] = Mailbox()
        self._death: StagewireError | None = None
        self._releasing: dict[str, asyncio.Future[None]] = {}
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._last: Here | None = None
        self._stale = 0
        self._workers = 0
        fleet.add(self)

    async def start(self) -> None:
        """Wait until a worker has registered. Raises `PluginError` saying which one did not."""
        await self._fleet.join(self)
        await self.available.wait()
        if self._death is not None:
            raise PluginError(str(self._death))

    async def close(self) -> None:
        """Let go; the workers are told."""
        for bound in self.bound.values():
            if bound.input is not None:
                bound.input.cancel()
        if self._input is not None:
            await self._input.close()
            self._input = None
        await self._fleet.leave(self)

    async def submit(self, request_id: str, payload: Submission, /) -> None:
        """Hand a request to the worker; waits while there is none."""
        await self.available.wait()
        prompt_streams = self._make_input is not None and streams(payload.prompt)
        if prompt_streams and self._make_input is not None and self._input is None:
            self._input = self._make_input(self._input_failed)
        submission = replace(payload, streamed=prompt_streams)
        bound = self.bound[request_id] = Bound(submission, request_id)
        try:
            await self._fleet.post(self.seat).put(self._submit(submission))
        except BaseException:
            self.bound.pop(request_id, None)
            raise
        if prompt_streams and self.bound.get(request_id) is bound:
            bound.input = self._fleet.spawn(self._send_input(bound), f"input {request_id}")

    async def resubmit(self, bound: Bound, submission: Submission) -> None:
        """Hand a request that a lost worker had to its successor."""
        await self.available.wait()
        if self.bound.get(submission.wire_id) is bound:
            bound.attempts += 1
            await self._fleet.post(self.seat).put(self._submit(submission))

    async def get_output(self) -> Sequence[StageOutput]:
        """Return what came since the last call; raises once no worker is to be had (OR-11)."""
        outputs = await self._outputs.take()
        if self._death is not None:
            raise self._death
        return outputs

    async def abort(self, request_id: str) -> None:
        """Have the worker let go of a request; returns when it says that it has, or is lost (OR-12)."""
        bound = self.bound.pop(request_id, None)
        if bound is not None and bound.input is not None and not bound.input.done():
            bound.input.cancel()
        if self._input is not None and bound is not None and bound.submission.streamed:
            self._input.cancel(request_id)
        if self.worker is None:
            return
        released = self._releasing.get(request_id)
        if released is None:
            released = self._releasing[request_id] = asyncio.get_running_loop().create_future()
            self._tell(Abort, wire=request_id)
        await asyncio.shield(released)

    def credit(self, request_id: str, count: int) -> None:
        """So many outputs of the request were taken: the worker may put out more."""
        if request_id in self.bound:
            self._tell(Credit, wire=request_id, count=count)

    def has(self, wire: str) -> bool:
        """Return whether the request was handed to a worker and has not ended there."""
        return wire in self.bound

    def ready(self) -> bool:
        """Return whether a worker is there."""
        return self.available.is_set()

    def doing(self, request_id: str) -> Doing:
        """Return what the request did there at the last heartbeat."""
        doing = None if self._last is None else self._last.doing.get(request_id)
        return _DOING.get(doing or "", "running")

    def moves(self, request_id: str) -> int:
        """Return how many chunks of it had come in or gone out at the last heartbeat."""
        return 0 if self._last is None else self._last.moves.get(request_id, 0)

    def stats(self) -> dict[str, dict[str, float]]:
        """Return what it holds, and how many workers there were."""
        counts = {"bound": len(self.bound), "releasing": len(self._releasing), "calls": len(self._calls)}
        ends = {} if self._input is None else {f"edge {self._input.edge.name}": self._input.stats()}
        return {"worker": {**counts, "workers": self._workers, "stale": self._stale}, **ends}

    async def move(self, wire: str, source: StageId, edge_wire: str) -> Mark | bool:
        """See `LocalClient.move`."""
        result = await self._ask("move", wire, source, edge_wire)
        return result if isinstance(result, bool) else Mark(*result)

    async def resend(self, wire: str, target: StageId, replica: int, edge_wire: str, start: int) -> None:
        """See `LocalClient.resend`."""
        await self._ask("resend", wire, target, replica, edge_wire, start)

    async def resend_input(self, wire: str, edge_wire: str, start: int) -> None:
        """Send the prompt's chunks again, from number ``start`` on, under another id."""
        if isinstance(self._input, KeptEnd):
            self._input.check(wire, start, begun=True)
            self._fleet.spawn(self._input.resend(wire, edge_wire, start), f"input {wire} again")

    def retire(self, wire: str, target: StageId, replica: int, upto: int) -> None:
        """See `LocalClient.retire`."""
        if self.worker is not None:
            self._tell(Ask, wire=wire, call=0, method="retire", arguments=[target, replica, upto])

    def retire_input(self, wire: str, upto: int) -> None:
        """Forget the prompt's chunks before number ``upto``."""
        if isinstance(self._input, KeptEnd):
            self._input.retire(wire, upto)

    def take(self, report: Report, now: float) -> None:
        """Take a report about this seat, from whichever worker."""
        if isinstance(report, Here) and report.worker != self.worker:
            self._register(report, now)
        if report.worker != self.worker:
            self._stale += 1
            return
        self.heard_at = now
        if isinstance(report, Here):
            self._heartbeat(report, now)
        elif isinstance(report, Outputs):
            self._take_outputs(report)
        elif isinstance(report, Released):
            _resolve(self._releasing.pop(report.wire, None))
        elif isinstance(report, Told):
            self._answered(report)
        elif isinstance(report, Left):
            self.lose("it left", now, begun=not report.orderly)

    def lose(self, cause: str, now: float, *, begun: bool = True) -> None:
        """The worker is gone: its requests fail, or wait for its successor where the stage is idempotent (OR-11).

        Those that it had not ``begun`` wait for its successor in any case.
        """
        if self.worker is None:
            return
        self._fleet.report_lost(self, cause)
        self.worker, self._last = None, None
        self.available.clear()
        self.down_since = now
        for released in self._releasing.values():
            _resolve(released)
        self._releasing.clear()
        lost = f"its replica {self.seat.replica} was lost: {cause}"
        for call in self._calls.values():
            if not call.done():
                call.set_exception(RequestFailed("", self.seat.stage, lost))
        self._calls.clear()
        for wire, bound in list(self.bound.items()):
            if not begun:
                self._fleet.spawn(self.resubmit(bound, bound.submission), f"hand on {wire}")
            elif self.resumable:
                self._fleet.resume(self, bound, lost)
            else:
                self.fail(wire, lost)

    def fail(self, wire: str, cause: str | StagewireError) -> None:
        """End a request in an error that names this stage."""
        bound = self.bound.get(wire)
        if bound is None:
            return
        error = cause if isinstance(cause, RequestFailed) else RequestFailed("", self.seat.stage, str(cause))
        self._outputs.put(StageOutput(wire, None, finished=True, has_data=False, error=error))

    def die(self, error: StagewireError) -> None:
        """There will be no worker: whoever waits for outputs or for a worker is told."""
        if self._death is None:
            self._death = error
            self.available.set()
            self._outputs.put(StageOutput(""))

    def _register(self, here: Here, now: float) -> None:
        if here.leaving or (self.worker is not None and here.started < self.started):
            return
        if self.worker is not None:
            self.lose("another worker took its place", now)
        self.worker, self.started = here.worker, here.started
        self._workers += 1
        self._fleet.report_registered(self)
        self.available.set()

    def _heartbeat(self, here: Here, now: float) -> None:
        self._last = here
        if here.leaving and self.available.is_set():
            self.available.clear()
            self.down_since = now
        for wire, used in here.used.items():
            for source, upto in used.items():
                self._fleet.resumer.used(wire, source, self.seat.stage, upto)

    def _take_outputs(self, report: Outputs) -> None:
        for parts in report.outputs:
            bound = self.bound.get(parts[0])
            if bound is None:
                self._stale += 1
                continue
            output = unpack_output(parts, bound.submission.request_id, self.seat.stage)
            bound.mark = output.mark or bound.mark
            bound.outputs += output.has_data
            if output.finished:
                del self.bound[output.request_id]
                self._fleet.resumer.ended(self, bound)
            self._outputs.put(output)

    def _answered(self, told: Told) -> None:
        call = self._calls.pop(told.call, None)
        if call is None or call.done():
            return
        if told.error is None:
            call.set_result(told.result)
        else:
            call.set_exception(RequestFailed("", self.seat.stage, told.error))

    async def _ask(self, method: str, wire: str, *arguments: Any) -> Any:
        if self.worker is None:
            raise RequestFailed("", self.seat.stage, f"replica {self.seat.replica} has no worker")
        number = next(self._numbers)
        answer = self._calls[number] = asyncio.get_running_loop().create_future()
        self._tell(Ask, wire=wire, call=number, method=method, arguments=list(arguments))
        try:
            return await answer
        finally:
            self._calls.pop(number, None)

    def _submit(self, submission: Submission) -> Submit:
        resume = submission.resume
        return self._command(
            Submit,
            wire=submission.wire_id,
            request=submission.request_id,
            prompt=None if streams(submission.prompt) else submission.prompt,
            inputs=dict(submission.inputs),
            receivers=dict(submission.receivers),
            streamed=submission.streamed,
            resume=None if resume is None else _plain(resume),
        )

    def _tell(self, kind: type[C], **fields: Any) -> None:
        self._fleet.post(self.seat).put(self._command(kind, **fields))

    def _command(self, kind: type[C], **fields: Any) -> C:
        return kind(orchestrator=self._fleet.id, worker=self.worker or "", started=self.started, **fields)

    async def _send_input(self, bound: Bound) -> None:
        wire, end = bound.submission.wire_id, self._input
        assert end is not None, "only an entry stage has one"
        try:
            async for chunk in prompt_chunks(bound.submission.prompt):
                await end.send(wire, chunk)
            end.finish(wire)
        except Exception as error:  # noqa: BLE001 — an input may raise anything, and it fails its request only (OR-10)
            end.cancel(wire)
            self.fail(wire, f"its input: {describe(error)}")

    def _input_failed(self, wire: str, error: Exception) -> None:
        self.fail(wire, f"its input: {describe(error) if isinstance(error, TransportError) else error}")


def _plain(resume: Any) -> Mapping[str, Any]:
    return {
        "edge_wire": resume.edge_wire,
        "first_input": resume.first_input,
        "first_output": resume.first_output,
        "before": resume.before,
        "have": dict(resume.have),
    }


def _resolve(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
