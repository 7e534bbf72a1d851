"""Moves requests through the graph: which stage is submitted when, with what (OR-2, OR-5, OR-13, OR-14).

Everything here runs in the dispatcher, or in the handler while it registers, and waits for nothing.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from stagewire import StageId
from stagewire_orchestrator.clients import PayloadFn, Submission
from stagewire_orchestrator.graph import Graph, Node
from stagewire_orchestrator.ledger import SKIPPED, RequestState, StageRun
from stagewire_orchestrator.replicas import Replicas
from stagewire_orchestrator.shared import Shared

Fail = Callable[[RequestState, StageId, str, BaseException | None], None]
"""Ends a request: the stage, a cause in words or the hook that raised, and what it raised."""


class Progress:
    """Starts stages.

    Args:
        shared: What the workers share.
        graph: The graph.
        replicas: Where stages run.
        payload: Makes payloads.
        fail: Ends a request that cannot go on.
        on_left_out: Ends a request whose last final stages were left out by a route.
    """

    def __init__(
        self,
        shared: Shared,
        *,
        graph: Graph,
        replicas: Replicas,
        payload: PayloadFn,
        fail: Fail,
        on_left_out: Callable[[RequestState, StageId], None],
    ) -> None:
        self._shared = shared
        self._clock = shared.clock
        self._graph = graph
        self._replicas = replicas
        self._payload = payload
        self._fail = fail
        self._on_left_out = on_left_out

    def begin(self, state: RequestState) -> None:
        """Submit the entry stages. Fails at once when a stage that the request must pass has no replica (OR-11)."""
        for stage in self._graph.certain:
            if not self._replicas.usable(stage):
                self._fail(state, stage, self._replicas.why_lost(stage), None)
                return
        for node in self._graph.entries:
            if not state.over:
                self._start(state, node, {}, None)

    def ended(self, state: RequestState, run: StageRun) -> None:
        """Forward what a stage collected to its successors on batch edges."""
        node, collected = run.node, run.collected
        run.collected = {}
        for target in node.batch_targets:
            if state.over:
                return
            share = collected.get(None, []) if node.route is None else collected.get(target, SKIPPED)
            if share is not SKIPPED:
                self._shared.reports.forwarded(state, node.id, target, len(share))
            self._deliver(state, self._graph.nodes[target], node.id, share)

    def _deliver(self, state: RequestState, node: Node, source: StageId, share: Sequence[Any]) -> None:
        if node.id in state.runs:
            return  # an `any` join that has had its input
        if len(node.sources) == 1:
            self._continue(state, node, {source: share}, share)
            return
        arrived = state.arrived.setdefault(node.id, {})
        arrived[source] = share
        complete = len(arrived) == len(node.sources)
        if complete or (node.join == "any" and share is not SKIPPED):
            del state.arrived[node.id]
            self._join(state, node, {each: arrived[each] for each in node.sources if each in arrived})

    def _join(self, state: RequestState, node: Node, arrived: Mapping[StageId, Sequence[Any]]) -> None:
        inputs = {source: share for source, share in arrived.items() if share is not SKIPPED}
        if node.join != "zip" or not inputs:
            self._continue(state, node, inputs, inputs or SKIPPED)
            return
        lengths = {source: len(share) for source, share in inputs.items()}
        if len(set(lengths.values())) > 1:
            text = ", ".join(f"{source!r} {length}" for source, length in lengths.items())
            self._fail(state, node.id, f"its inputs cannot be zipped, they have different lengths: {text}", None)
            return
        self._continue(state, node, inputs, list(zip(*inputs.values(), strict=True)))

    def _continue(
        self, state: RequestState, node: Node, inputs: Mapping[StageId, Sequence[Any]], collected: Any
    ) -> None:
        if collected is SKIPPED:
            self._skip(state, node)
        else:
            self._start(state, node, inputs, collected)

    def _skip(self, state: RequestState, node: Node) -> None:
        """Leave a stage out, and what only it leads to: it counts as ended without a chunk."""
        state.runs[node.id] = StageRun(node, None, self._clock(), ended=True)
        state.finals_left -= node.final
        if not state.finals_left:
            self._on_left_out(state, node.id)
        for target in (*node.batch_targets, *node.chunk_targets):
            if not state.over:
                self._deliver(state, self._graph.nodes[target], node.id, SKIPPED)

    def _start(self, state: RequestState, node: Node, inputs: Mapping[StageId, Sequence[Any]], collected: Any) -> None:
        """Mark a stage and all that consume with it submitted, then hand them to their submitters (OR-2)."""
        group = self._register(state, node)
        for run in group:
            if state.over:
                return
            first = run is group[0]
            submission = self._submission(state, run, inputs if first else {}, collected if first else ())
            self._make(state, run, submission)

    def _register(self, state: RequestState, first: Node) -> list[StageRun]:
        group: list[StageRun] = []
        todo = [first]
        while todo:
            node = todo.pop(0)
            if node.id in state.runs:
                continue
            replica = self._replicas.pick(node.id)
            if replica is None:
                self._fail(state, node.id, self._replicas.why_lost(node.id), None)
                return group
            run = state.runs[node.id] = StageRun(node, replica, self._clock())
            group.append(run)
            todo += [self._graph.nodes[target] for target in node.chunk_targets]
        return group

    def _submission(
        self, state: RequestState, run: StageRun, inputs: Mapping[StageId, Sequence[Any]], collected: Any
    ) -> Submission:
        receivers = {}
        for target in run.node.chunk_targets:
            replica = state.runs[target].replica
            if replica is not None:
                receivers[target] = replica.number
        return Submission(state.id, state.wire, run.node.id, state.prompt, inputs, collected, receivers)

    def _make(self, state: RequestState, run: StageRun, submission: Submission) -> None:
        try:
            payload = self._payload(submission)
            if submission.collected is not None and inspect.isawaitable(payload):
                self._make_later(state, run, payload)
                return
        except Exception as error:  # noqa: BLE001 — a forward function may raise anything; the others go on (OR-10)
            self._fail(state, run.node.id, "forward_fn", error)
            return
        self._submit(state, run, payload)

    def _submit(self, state: RequestState, run: StageRun, payload: Any) -> None:
        if run.replica is not None and not state.over:
            self._shared.submitters[run.replica].add(state, run, payload)

    def _make_later(self, state: RequestState, run: StageRun, payload: Awaitable[Any]) -> None:
        task = self._shared.spawn(self._await_payload(state, run, payload), f"payload {run.node.id} {state.wire}")
        state.making.add(task)
        task.add_done_callback(state.making.discard)

    async def _await_payload(self, state: RequestState, run: StageRun, payload: Awaitable[Any]) -> None:
        try:
            made = await payload
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._shared.ready.post(self._not_made, state, run, error)
        except Exception as error:  # noqa: BLE001 — see _make
            self._shared.ready.post(self._not_made, state, run, error)
        else:
            self._shared.ready.post(self._submit, state, run, made)

    def _not_made(self, state: RequestState, run: StageRun, error: BaseException) -> None:
        if not state.over:
            self._fail(state, run.node.id, "forward_fn", error)
