"""The one task that moves requests on: takes what is ready, changes the ledger, waits for nothing else (OR-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from stagewire import RequestFailed
from stagewire.codec import weigh
from stagewire_orchestrator.endings import Endings, acknowledged
from stagewire_orchestrator.ledger import RequestState, StageRun
from stagewire_orchestrator.outputs import OrchOutput, StageOutput
from stagewire_orchestrator.progress import Progress
from stagewire_orchestrator.replicas import Replica, Replicas
from stagewire_orchestrator.shared import Shared
from stagewire_orchestrator.watch import Watch


class Dispatcher:
    """Handles what the ready queue brings. No handler raises out of it, and none awaits.

    Args:
        shared: What the workers share.
        replicas: Where stages run.
        progress: Submits further stages.
        endings: Ends requests.
        watch: The requests' clocks.
    """

    def __init__(
        self, shared: Shared, *, replicas: Replicas, progress: Progress, endings: Endings, watch: Watch
    ) -> None:
        self._shared = shared
        self._ledger = shared.ledger
        self._outbox = shared.outbox
        self._reports = shared.reports
        self._ready = shared.ready
        self._replicas = replicas
        self._progress = progress
        self._endings = endings
        self._watch = watch
        self._most_collected = int(shared.limits.collected_bytes)
        self._blocks = shared.limits.slow_client == "block"
        self._drops = shared.limits.slow_client == "drop"

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            for handler, args in await self._ready.take():
                try:
                    handler(*args)
                except Exception as error:  # noqa: BLE001 — one fault must not end the dispatcher, and with it all requests
                    self._reports.fault(error)

    def on_outputs(self, replica: Replica, outputs: Sequence[StageOutput]) -> None:
        """Handle what one replica put out, in order."""
        replica.outputs += len(outputs)
        for output in outputs:
            try:
                state = self._ledger.get(output.request_id)
            except (AttributeError, TypeError):  # a client put something that is no output
                state = None
            run = state.runs.get(replica.stage) if state is not None else None
            if state is None or run is None or run.ended or run.replica is not replica:
                self._reports.late(replica, output)
                continue
            try:
                self._take(state, run, replica, output)
            except Exception as error:  # noqa: BLE001 — a route may raise anything, and the others go on (OR-10)
                if not state.over:
                    self._endings.fail(state, replica.stage, "its output", error)

    def on_submitted(self, state: RequestState, run: StageRun) -> None:
        """The client took a submission."""
        self._reports.submitted(state, run)
        if run.node.entry and state.started_at is None:
            state.started_at = self._ready.now
            if self._watch.active:
                self._watch.look(state)

    def on_refused(self, state: RequestState, run: StageRun, error: BaseException) -> None:
        """The client did not take a submission."""
        if not state.over:
            self._endings.fail(state, run.node.id, "submit", error)

    def on_lost(self, replica: Replica, cause: str) -> None:
        """A replica's reader ended: fail what is bound to it (OR-11)."""
        self._replicas.lose(replica, cause)
        bound = [state for state in self._ledger.values() if _bound(state, replica)]
        self._reports.lost(replica, len(bound))
        for state in bound:
            self._endings.fail(state, replica.stage, f"its replica {replica.number} was lost: {cause}")

    def on_abort(self, wire: str, waiter: asyncio.Future[bool]) -> None:
        """Somebody wants a request gone, and to be told when it is."""
        state = self._ledger.get(wire)
        if state is not None:
            acknowledged(self._endings.cancel(state), waiter)
        elif (release := self._endings.releases.get(wire)) is not None:
            release.acknowledge.append(waiter)
        elif not waiter.done():
            waiter.set_result(False)

    def _take(self, state: RequestState, run: StageRun, replica: Replica, output: StageOutput) -> None:
        if output.error is not None:
            self._stage_failed(state, run, output.error)
            return
        weight = 0
        if output.has_data:
            run.outputs += 1
            weight = weigh(output.data)
            if run.node.batch_targets:
                self._collect(run, output, weight)
        if output.finished:
            self._stage_ended(state, run, replica)
        if run.node.final:
            self._emit(state, run, replica, output, weight)
        elif output.has_data and replica.credit is not None:
            replica.credit(state.wire, 1)
        if output.finished:  # of two independent ifs the second (OR-5)
            self._progress.ended(state, run)

    def _collect(self, run: StageRun, output: StageOutput, weight: int) -> None:
        run.bytes += weight
        if run.bytes > self._most_collected:
            limit = self._shared.limits.collected_bytes.human_readable()
            raise OverflowError(f"more than {limit} in front of a batch edge; make the edge chunk")
        route = run.node.route
        if route is not None:
            run.shares = run.shares or {}
            for target in route(run.outputs - 1, output.to):
                run.shares.setdefault(target, []).append(output.data)
        elif run.collected is None:
            run.collected = [output.data]
        else:
            run.collected.append(output.data)

    def _stage_ended(self, state: RequestState, run: StageRun, replica: Replica) -> None:
        run.ended = True
        replica.load -= 1
        replica.ended += 1
        state.finals_left -= run.node.final
        self._reports.stage_ended(state, run, self._ready.now)

    def _stage_failed(self, state: RequestState, run: StageRun, error: BaseException) -> None:
        if isinstance(error, RequestFailed):
            self._endings.fail(state, error.stage, error.cause)
        else:
            self._endings.fail(state, run.node.id, "process", error)

    def _emit(self, state: RequestState, run: StageRun, replica: Replica, output: StageOutput, weight: int) -> None:
        if not state.finals_left:
            made = OrchOutput(state.id, run.node.id, output.data, finished=True, has_data=output.has_data)
            self._endings.finish(state, made)
        elif not output.has_data:
            return
        elif self._blocks or not self._outbox.full(state.lane):
            made = OrchOutput(state.id, run.node.id, output.data)
            self._outbox.put(state.lane, made, weight)
            self._passed_on(state, replica)
        elif self._drops:
            self._reports.dropped_for_client(state, replica)
            self._credit(state, replica)
        else:
            cause = f"the client is slow: {len(state.lane.outputs)} outputs wait for it (limits.slow_client is cancel)"
            self._endings.cancel(state, RequestFailed(state.id, run.node.id, cause))

    def _passed_on(self, state: RequestState, replica: Replica) -> None:
        first, state.last_output_at = state.last_output_at is None, self._ready.now
        if first and self._watch.active:
            self._watch.look(state)
        if not self._blocks:
            self._credit(state, replica)
        elif replica.credit is not None:
            state.lane.flows(replica)
        elif self._outbox.full(state.lane):
            state.lane.hold(replica)

    def _credit(self, state: RequestState, replica: Replica) -> None:
        if replica.credit is not None:
            replica.credit(state.wire, 1)


def _bound(state: RequestState, replica: Replica) -> bool:
    run = state.runs.get(replica.stage)
    return run is not None and run.replica is replica and not run.ended
