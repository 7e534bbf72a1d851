"""Lets a request go on at another worker when the one that had it was lost (OR-11, OR-15).

Whoever takes a stage's outputs knows where the stage stood: each output carries its `Mark`. So the successors are
asked for the last mark that they have and take what follows under a new id; the worker that takes over begins at the
earliest input that one of them still needs, is sent the inputs from there on again, and leaves out what they have.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from stagewire import StageId, StagewireError
from stagewire_orchestrator.clients import ORCHESTRATOR, Resume, Submission
from stagewire_orchestrator.graph import Graph
from stagewire_orchestrator.ledger import RequestState
from stagewire_orchestrator.links import again
from stagewire_orchestrator.local_client import LocalClient
from stagewire_orchestrator.outputs import Mark

if TYPE_CHECKING:
    from stagewire_orchestrator.remote.client import Bound, RemoteClient

ATTEMPTS = 5
"""Workers that a request may have in one stage; one that kills them all fails in the end."""

SOON = 0.02
"""Seconds between two looks at whether a stage has begun; it is about to."""

EVERYTHING = 2**53
"""Beyond the number of every input."""

_NONE = Mark(0, 0, -1)
"""The mark of who has no output yet."""


class Neighbour(Protocol):
    """What is asked of the clients of the stages before and behind; see `LocalClient`."""

    def has(self, wire: str) -> bool: ...

    async def move(self, wire: str, source: StageId, edge_wire: str) -> Mark | bool: ...

    async def resend(self, wire: str, target: StageId, replica: int, edge_wire: str, start: int) -> None: ...

    def retire(self, wire: str, target: StageId, replica: int, upto: int) -> None: ...


class Resumer:
    """Belongs to one orchestrator; `connect` tells it the clients once all are made."""

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._clients: Mapping[StageId, Sequence[Neighbour]] = {}
        self._ledger: Mapping[str, RequestState] = {}
        self._numbers = itertools.count(1)
        self._used: dict[tuple[str, StageId], dict[StageId, int]] = {}

    def connect(self, graph: Graph, clients: Mapping[StageId, Sequence[Neighbour]]) -> None:
        """Take the clients of every stage, by replica."""
        self._graph = graph
        self._clients = clients

    def watch(self, ledger: Mapping[str, RequestState]) -> None:
        """Take the orchestrator's ledger, to look at."""
        self._ledger = ledger

    async def resume(self, member: RemoteClient, bound: Bound, cause: str) -> None:
        """Have the seat's next worker go on with a request; where that cannot be it fails with the cause."""
        wire = bound.submission.wire_id
        if bound.attempts >= ATTEMPTS:
            member.fail(wire, f"{cause}, as were the {bound.attempts - 1} workers before it that had this request")
            return
        try:
            await self._resume(member, bound)
        except StagewireError as error:
            member.fail(wire, f"{cause}, and the request cannot go on elsewhere: {error}")

    def used(self, wire: str, source: StageId, target: StageId, upto: int) -> None:
        """The stage ``target`` needs no input of the stage ``source`` before number ``upto`` to be used again."""
        member = self._bound_at(wire, source)
        if member is None:
            return
        client, bound = member
        needed = self._used.setdefault((wire, source), {})
        needed[target] = upto
        least = self._least(bound, needed)
        if least > bound.retired:
            bound.retired = least
            self._retire(client, bound.submission, least)

    def ended(self, member: RemoteClient, bound: Bound) -> None:
        """A stage has ended for a request: its inputs need not be kept any more."""
        self._used.pop((bound.submission.wire_id, member.seat.stage), None)
        if member.resumable:
            self._retire(member, bound.submission, EVERYTHING)

    def look(self) -> None:
        """Ask the stages of this process what they have used; those elsewhere tell it with their heartbeats."""
        for stage, clients in self._clients.items():
            for client in clients:
                if isinstance(client, LocalClient):
                    for wire, used in client.used().items():
                        for source, upto in used.items():
                            self.used(wire, source, stage, upto)
        for wire, source in [key for key in self._used if self._bound_at(*key) is None]:
            del self._used[wire, source]

    async def _resume(self, member: RemoteClient, bound: Bound) -> None:
        submission, stage = bound.submission, member.seat.stage
        wire = submission.wire_id
        edge_wire = again(wire, next(self._numbers))
        marks = await self._marks(submission, stage, edge_wire)
        if self._to_orchestrator(stage):
            marks[ORCHESTRATOR] = bound.mark or _NONE
        start = min(marks.values(), default=_NONE)
        have = {target: mark.output + 1 for target, mark in marks.items()}
        resume = Resume(edge_wire, start.input, start.first, bound.name, have)
        bound.name = edge_wire
        await member.resubmit(bound, replace(submission, resume=resume))
        if submission.streamed:
            await member.resend_input(wire, edge_wire, start.input)
        for source, replica in submission.senders.items():
            sender = self._clients[source][replica]
            await self._begun(sender, wire, source)
            await sender.resend(wire, stage, member.seat.replica, edge_wire, start.input)

    async def _marks(self, submission: Submission, stage: StageId, edge_wire: str) -> dict[StageId, Mark]:
        """Return the last mark of each successor that still wants something."""
        wire = submission.wire_id
        moves = (
            self._move(self._clients[target][replica], target, wire, stage, edge_wire)
            for target, replica in submission.receivers.items()
        )
        results = zip(submission.receivers, await asyncio.gather(*moves), strict=True)
        return {target: mark if isinstance(mark, Mark) else _NONE for target, mark in results if mark}

    async def _move(
        self, client: Neighbour, target: StageId, wire: str, source: StageId, edge_wire: str
    ) -> Mark | bool:
        return await self._begun(client, wire, target) and await client.move(wire, source, edge_wire)

    async def _begun(self, client: Neighbour, wire: str, stage: StageId) -> bool:
        """Wait until a stage that was marked submitted has the request; ``False`` when it has ended already."""
        while not client.has(wire):
            state = self._ledger.get(wire)
            if state is None or state.runs[stage].ended:
                return False
            await asyncio.sleep(SOON)
        return True

    def _to_orchestrator(self, stage: StageId) -> bool:
        assert self._graph is not None, "connect comes before the start"
        node = self._graph.nodes[stage]
        return node.final or bool(node.batch_targets)

    def _bound_at(self, wire: str, stage: StageId) -> tuple[RemoteClient, Bound] | None:
        for client in self._clients.get(stage, ()):
            bound = getattr(client, "bound", {}).get(wire)
            if bound is not None and client.resumable:  # type: ignore[attr-defined]
                return client, bound  # type: ignore[return-value]
        return None

    def _least(self, bound: Bound, needed: Mapping[StageId, int]) -> int:
        stage = bound.submission.stage
        least = [needed.get(target, 0) for target in bound.submission.receivers]
        if self._to_orchestrator(stage):
            least.append(0 if bound.mark is None else bound.mark.input)
        return min(least, default=0)

    def _retire(self, member: RemoteClient, submission: Submission, upto: int) -> None:
        wire, seat = submission.wire_id, member.seat
        if submission.streamed:
            member.retire_input(wire, upto)
        for source, replica in submission.senders.items():
            self._clients[source][replica].retire(wire, seat.stage, seat.replica, upto)
