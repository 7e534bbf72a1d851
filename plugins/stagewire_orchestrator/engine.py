"""The workers of an orchestrator, wired together; `Orchestrator` starts and stops them."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from stagewire import StageId
from stagewire_orchestrator.dispatcher import Dispatcher
from stagewire_orchestrator.endings import Endings
from stagewire_orchestrator.graph import Graph
from stagewire_orchestrator.handler import Abort, Add, Handler
from stagewire_orchestrator.ledger import RequestState
from stagewire_orchestrator.mailbox import Mailbox
from stagewire_orchestrator.options import Clocks
from stagewire_orchestrator.outbox import Lane
from stagewire_orchestrator.outputs import OrchOutput
from stagewire_orchestrator.payloads import Maker
from stagewire_orchestrator.progress import Progress
from stagewire_orchestrator.readers import Reader
from stagewire_orchestrator.replicas import Replicas
from stagewire_orchestrator.shared import Shared
from stagewire_orchestrator.standstill import Standstill
from stagewire_orchestrator.submitter import Submitter
from stagewire_orchestrator.watch import Watch


class Engine:
    """Everything that belongs to one orchestrator, before and while it runs.

    Args:
        shared: What the workers share.
        graph: The graph.
        replicas: Where its stages run.
        maker: Makes payloads.
        clocks: The requests' clocks.
    """

    def __init__(self, shared: Shared, *, graph: Graph, replicas: Replicas, maker: Maker, clocks: Clocks) -> None:
        self._shared = shared
        self._graph = graph
        self._replicas = replicas
        self.inbox: Mailbox[Add | Abort] = Mailbox()
        self._endings = Endings(shared)
        self._progress = Progress(
            shared,
            graph=graph,
            replicas=replicas,
            maker=maker,
            fail=self._endings.fail,
            on_left_out=self._end_without_output,
        )
        self._watch = Watch(clocks, shared.ready, self._endings.fail)
        self._standstill = Standstill(graph, shared.ready, self._endings.fail)
        self._dispatcher = Dispatcher(
            shared, replicas=replicas, progress=self._progress, endings=self._endings, watch=self._watch
        )
        self._handler = Handler(
            self.inbox, shared.reports, register=self._register, begin=self._begin, abort=self._abort
        )

    def workers(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yield one worker for each source that may block (OR-3), with its name."""
        dispatcher, ready = self._dispatcher, self._shared.ready
        for replica in self._replicas:
            submitter = Submitter(
                replica,
                ready,
                on_submitted=dispatcher.on_submitted,
                on_refused=dispatcher.on_refused,
                tell_all=self._shared.reports.debug,
            )
            self._shared.submitters[replica] = submitter
            reader = Reader(replica, ready, dispatcher.on_outputs, dispatcher.on_lost)
            yield f"submitter {replica.stage}/{replica.number}", submitter.run()
            yield f"reader {replica.stage}/{replica.number}", reader.run()
        yield "handler", self._handler.run()
        yield "dispatcher", dispatcher.run()

    def cancel_everything(self) -> None:
        """Give every request that has no terminal yet a CANCEL; only once the workers have ended."""
        for message in self.inbox.drain():
            if isinstance(message, Add):
                self._register(message)
            elif not message.waiter.done():
                message.waiter.set_result(self._shared.door.wire(message.id) is not None)
        for state in list(self._shared.ledger.values()):
            self._endings.drop(state)
        for release in list(self._endings.releases.values()):
            self._endings.released(release)
        self._shared.ready.drain()
        self._shared.outbox.close()

    def tables(self) -> dict[str, float]:
        """Return the live size of every table; all are 0 when nothing is in flight and every output was taken."""
        shared = self._shared
        return {
            "ledger": len(shared.ledger),
            "releases": len(self._endings.releases),
            "ids": shared.door.inside,
            "slots": shared.door.slots_taken,
            "waiting": shared.door.waiting,
            "inbox": len(self.inbox),
            "ready": len(shared.ready),
            "submitting": sum(map(len, shared.submitters.values())),
            "outputs": len(shared.outbox),
            "load": sum(replica.load for replica in self._replicas),
        }

    def _register(self, message: Add) -> RequestState:
        state = RequestState(
            id=message.id,
            wire=message.wire,
            prompt=message.prompt,
            lane=Lane(message.wire),
            added_at=message.added_at,
            finals_left=len(self._graph.finals),
        )
        self._shared.ledger[message.wire] = state
        return state

    def _begin(self, state: RequestState) -> None:
        self._shared.reports.admitted(state)
        self._progress.begin(state)
        if self._watch.active:
            self._watch.look(state)
        if self._standstill.active:
            self._standstill.watch(state)

    def _abort(self, message: Abort) -> None:
        door = self._shared.door
        wire = door.wire(message.id)
        if wire is not None:
            self._shared.ready.post(self._dispatcher.on_abort, wire, message.waiter)
        elif not message.waiter.done():
            message.waiter.set_result(False)

    def _end_without_output(self, state: RequestState, stage: StageId) -> None:
        self._endings.finish(state, OrchOutput(state.id, stage, None, finished=True, has_data=False))
