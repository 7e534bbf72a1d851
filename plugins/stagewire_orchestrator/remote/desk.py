"""One seat as its worker has it: takes commands, runs requests in a `LocalClient`, reports to whose they are."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from stagewire import (
    BatchTransport,
    Permanent,
    Retryable,
    StageId,
    StagewireError,
    emit,
)
from stagewire.lifecycle import StopSignal, TaskRegistry
from stagewire_orchestrator.clients import Resume, Submission
from stagewire_orchestrator.graph import Node
from stagewire_orchestrator.local_client import LocalClient
from stagewire_orchestrator.outputs import StageOutput
from stagewire_orchestrator.payloads import collected
from stagewire_orchestrator.remote.liveness import Liveness
from stagewire_orchestrator.remote.names import Seat, orchestrator_mailbox, worker_mailbox
from stagewire_orchestrator.remote.outputs import pack_output
from stagewire_orchestrator.remote.post import AGAIN, Numbers, Post
from stagewire_orchestrator.remote.protocol import (
    Abort,
    Ask,
    Bye,
    Command,
    Credit,
    Hello,
    Here,
    Left,
    Outputs,
    Record,
    Released,
    Report,
    Submit,
    Told,
    unpack,
)

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

R = TypeVar("R", bound=Report)

FLUSH = 5.0
"""Seconds that the last reports have to be confirmed."""


class Superseded(StagewireError):
    """Another worker, started later, has the seat."""


@dataclass(slots=True, eq=False)
class _Orchestrator:
    """Somebody whose requests run here."""

    post: Post
    sending: asyncio.Task[None]
    heard_at: float


class Desk:
    """Belongs to one event loop. Several orchestrators may have requests here, each with ids of its own.

    Args:
        scope: What the names of the mailboxes begin with.
        seat: The seat.
        client: What runs the requests; started and closed here.
        node: The stage's place in the graph.
        batches: The mailboxes.
        liveness: The clocks.
        log: Where events go.
        wall: Seconds since 1970; a worker that starts later takes the seat over.
    """

    def __init__(
        self,
        scope: str,
        seat: Seat,
        client: LocalClient,
        *,
        node: Node,
        batches: BatchTransport,
        liveness: Liveness,
        log: FilteringBoundLogger,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.seat = seat
        self.name = secrets.token_hex(6)
        self.served = 0
        self._started = int(wall() * 1e6)
        self._scope = scope
        self._client = client
        self._node = node
        self._batches = batches
        self._liveness = liveness
        self._log = log
        self._orchestrators: dict[str, _Orchestrator] = {}
        self._owners: dict[str, str] = {}
        self._numbers = Numbers()
        self._tasks = TaskRegistry(f"worker {seat}", log=log)
        self._leaving = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def serve(self, stop: StopSignal) -> None:
        """Work until the stop; then take nothing new, and return when what was begun has ended and was reported.

        Raises:
            Superseded: Another worker took the seat.
            StagewireError: The stage cannot be opened, or the mailboxes cannot be read.
        """
        await self._client.start()
        reading = self._tasks.spawn(self._read(), name=f"commands for {self.seat}", report=False)
        self._tasks.spawn(self._carry(), name=f"outputs of {self.seat}")
        self._tasks.spawn(self._beat(), name=f"signs of life of {self.seat}")
        leaving = self._tasks.spawn(self._leave(stop), name=f"leaving of {self.seat}", report=False)
        done, _ = await asyncio.wait([reading, leaving], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def close(self) -> None:
        """Cut off what is left, say so, and close the stage. Idempotent."""
        self._tasks.cancel_all()
        self._tasks.close()
        await self._tasks.join()
        for each in self._orchestrators.values():
            each.post.put(self._report(Left, orderly=not self._owners))
        await asyncio.gather(*(self._close_post(each) for each in self._orchestrators.values()))
        self._orchestrators.clear()
        await self._client.close()

    async def _leave(self, stop: StopSignal) -> None:
        await stop.wait()
        self._leaving = True
        self._tell_all()
        await self._idle.wait()

    async def _close_post(self, orchestrator: _Orchestrator) -> None:
        await orchestrator.post.flush(FLUSH)
        orchestrator.sending.cancel()
        await asyncio.wait([orchestrator.sending])
        orchestrator.post.close()

    async def _read(self) -> None:
        mailbox = worker_mailbox(self._scope, self.seat)
        while True:
            try:
                async with self._batches.get_batch(mailbox, limit=64) as batch:
                    for delivery in batch:
                        await self._handle(unpack(delivery.message))
            except Retryable:
                await asyncio.sleep(AGAIN)

    async def _handle(self, record: Record) -> None:
        if isinstance(record, Command | Hello) and record.started > self._started:  # given back, for whom it is meant
            raise Superseded(f"another worker took replica {self.seat.replica} of stage {self.seat.stage!r}")
        if isinstance(record, Command) and record.worker != self.name:
            return
        if not self._numbers.fresh(record):
            return
        if isinstance(record, Hello):
            self._greeted(record.orchestrator)
        elif isinstance(record, Bye):
            self._tasks.spawn(
                self._part(record.orchestrator, "it left", left=True), name=f"parting from {record.orchestrator}"
            )
        elif isinstance(record, Submit):
            await self._submit(record)
        elif isinstance(record, Abort):
            self._tasks.spawn(self._abort(record), name=f"abort {record.wire}")
        elif isinstance(record, Credit):
            self._client.credit(record.wire, record.count)
        elif isinstance(record, Ask):
            await self._answer(record)

    def _greeted(self, name: str) -> None:
        known = self._orchestrators.get(name)
        if known is None:
            post = Post(self._batches, orchestrator_mailbox(self._scope, name))
            sending = asyncio.get_running_loop().create_task(post.run(), name=f"post to orchestrator {name}")
            known = self._orchestrators[name] = _Orchestrator(post, sending, 0.0)
            known.post.put(self._here({}))
        known.heard_at = self._now()

    async def _submit(self, record: Submit) -> None:
        self._owners[record.wire] = record.orchestrator
        self._idle.clear()
        self.served += 1
        if record.resume is not None:
            first = record.resume["first_input"]
            emit(self._log, "worker.resumed", request_id=record.request, **self._ids(), first=first)
            self._tasks.spawn(self._client.drain(record.resume["before"]), name=f"drain {record.wire}")
        await self._client.submit(record.wire, submission(record, self._node))

    async def _abort(self, record: Abort) -> None:
        await self._client.abort(record.wire)
        self._disown(record.wire)
        self._tell(record.orchestrator, self._report(Released, wire=record.wire))

    async def _answer(self, record: Ask) -> None:
        wire, arguments = record.wire, record.arguments
        result: Any = None
        error: str | None = None
        try:
            if record.method == "move":
                mark = await self._client.move(wire, *arguments)
                result = mark if isinstance(mark, bool) else list(mark)
            elif record.method == "resend":
                await self._client.resend(wire, *arguments)
            else:
                self._client.retire(wire, *arguments)
        except StagewireError as failure:
            error = str(failure)
        if record.call:
            self._tell(record.orchestrator, self._report(Told, call=record.call, result=result, error=error))

    async def _carry(self) -> None:
        while True:
            shares: defaultdict[str, list[StageOutput]] = defaultdict(list)
            for output in await self._client.get_output():
                shares[self._owners.get(output.request_id, "")].append(output)
            await asyncio.gather(*(self._report_outputs(name, outputs) for name, outputs in shares.items()))

    async def _report_outputs(self, name: str, outputs: Sequence[StageOutput]) -> None:
        """Send outputs. What cannot be encoded, or is too large, fails its request only (OR-10)."""
        orchestrator = self._orchestrators.get(name)
        if orchestrator is None:
            return
        sent = orchestrator.post.put(self._report(Outputs, outputs=[pack_output(each) for each in outputs]))
        for output in outputs:
            if output.finished:
                self._disown(output.request_id)
        await asyncio.wait([sent])
        error = None if sent.cancelled() else sent.exception()
        if not isinstance(error, Permanent):
            return
        if len(outputs) == 1:
            wire = outputs[0].request_id
            await self._report_outputs(name, [StageOutput(wire, finished=True, has_data=False, error=error)])
            return
        for output in outputs:
            await self._report_outputs(name, [output])

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._liveness.heartbeat)
            now = self._now()
            for name, each in list(self._orchestrators.items()):
                if len(each.post):
                    each.heard_at = now  # the transport is away, and so nobody can be heard
                elif now - each.heard_at > self._liveness.lost_after:
                    await self._part(name, f"no heartbeat for {now - each.heard_at:.1f} s")
            self._tell_all()

    def _tell_all(self) -> None:
        running = self._client.running
        for name, each in self._orchestrators.items():
            mine = {wire: running[wire] for wire, owner in self._owners.items() if owner == name and wire in running}
            each.post.put(self._here(mine))

    def _here(self, running: Mapping[str, tuple[str, int]]) -> Here:
        used = self._client.used()
        return self._report(
            Here,
            leaving=self._leaving,
            doing={wire: doing for wire, (doing, _moves) in running.items()},
            moves={wire: moves for wire, (_doing, moves) in running.items()},
            used={wire: used[wire] for wire in running if wire in used},
        )

    async def _part(self, name: str, why: str, *, left: bool = False) -> None:
        """An orchestrator is gone: let go of its requests (OR-12)."""
        gone = self._orchestrators.pop(name, None)
        if gone is None:
            return
        wires = [wire for wire, owner in self._owners.items() if owner == name]
        if wires or not left:
            emit(self._log, "worker.orchestrator_gone", **self._ids(), cause=why, requests=len(wires))
        await asyncio.gather(*(self._client.abort(wire) for wire in wires))
        for wire in wires:
            self._disown(wire)
        gone.sending.cancel()
        await asyncio.wait([gone.sending])
        gone.post.close()

    def _disown(self, wire: str) -> None:
        self._owners.pop(wire, None)
        if not self._owners:
            self._idle.set()

    def _tell(self, name: str, record: Record) -> None:
        orchestrator = self._orchestrators.get(name)
        if orchestrator is not None:
            orchestrator.post.put(record)

    def _report(self, kind: type[R], **fields: Any) -> R:
        seat = self.seat
        return kind(stage=seat.stage, replica=seat.replica, worker=self.name, started=self._started, **fields)

    def _ids(self) -> dict[str, Any]:
        return {"stage": self.seat.stage, "replica": self.seat.replica}

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def submission(record: Submit, node: Node) -> Submission:
    """Return what the stage is given, as in the orchestrator's process."""
    inputs: Mapping[StageId, Sequence[Any]] = record.inputs
    return Submission(
        record.request,
        record.wire,
        node.id,
        record.prompt,
        inputs,
        collected(node, inputs),
        record.receivers,
        streamed=record.streamed,
        resume=None if record.resume is None else Resume(**record.resume),
    )
