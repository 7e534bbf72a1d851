"""Moves requests through the graph: which stage is submitted when, with what (OR-2, OR-5, OR-13, OR-14).

Everything here runs in the dispatcher, or in the handler while it registers, and waits for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from stagewire import StageId
from stagewire_orchestrator.graph import Graph, Node
from stagewire_orchestrator.ledger import SKIPPED, RequestState, StageRun
from stagewire_orchestrator.payloads import Inputs, Maker
from stagewire_orchestrator.replicas import Replicas
from stagewire_orchestrator.shared import Shared
from stagewire_orchestrator.tasks import own_task

Fail = Callable[[RequestState, StageId, str, BaseException | None], None]
"""Ends a request: the stage, a cause in words or the hook that raised, and what it raised."""


_NOTHING: Inputs = {}


class Progress:
    """Starts stages.

    Args:
        shared: What the workers share.
        graph: The graph.
        replicas: Where stages run.
        maker: Makes payloads.
        fail: Ends a request that cannot go on.
        on_left_out: Ends a request whose last final stages were left out by a route.
    """

    def __init__(
        self,
        shared: Shared,
        *,
        graph: Graph,
        replicas: Replicas,
        maker: Maker,
        fail: Fail,
        on_left_out: Callable[[RequestState, StageId], None],
    ) -> None:
        self._shared = shared
        self._graph = graph
        self._replicas = replicas
        self._maker = maker
        self._fail = fail
        self._on_left_out = on_left_out

    def begin(self, state: RequestState) -> None:
        """Submit the entry stages. Fails at once when a stage that the request must pass has no replica (OR-11)."""
        self._shared.ready.catch_up(state.added_at)
        exhausted = self._replicas.exhausted(self._graph.certain)
        if exhausted is not None:
            self._fail(state, exhausted, self._replicas.why_lost(exhausted), None)
            return
        for node in self._graph.entries:
            if not state.over:
                self._start(state, node, _NOTHING, None)

    def ended(self, state: RequestState, run: StageRun) -> None:
        """Forward what a stage collected to its successors on batch edges; unless the request is over."""
        node = run.node
        for target in node.batch_targets:
            if state.over:
                return
            share: Sequence[Any] = run.collected or []
            if node.route is not None:
                share = (run.shares or {}).get(target, SKIPPED)
            if share is not SKIPPED:
                self._shared.reports.forwarded(state, node.id, target, len(share))
            self._deliver(state, self._graph.nodes[target], node.id, share)
        run.collected = run.shares = None

    def _deliver(self, state: RequestState, node: Node, source: StageId, share: Sequence[Any]) -> None:
        if node.id in state.runs:
            return  # an `any` join that has had its input
        if len(node.sources) == 1:
            self._continue(state, node, {source: share}, share)
            return
        if state.arrived is None:
            state.arrived = {}
        arrived = state.arrived.setdefault(node.id, {})
        arrived[source] = share
        complete = len(arrived) == len(node.sources)
        if complete or (node.join == "any" and share is not SKIPPED):
            del state.arrived[node.id]
            self._join(state, node, {each: arrived[each] for each in node.sources if each in arrived})

    def _join(self, state: RequestState, node: Node, arrived: Inputs) -> None:
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

    def _continue(self, state: RequestState, node: Node, inputs: Inputs, collected: Any) -> None:
        if collected is SKIPPED:
            self._skip(state, node)
        else:
            self._start(state, node, inputs, collected)

    def _skip(self, state: RequestState, node: Node) -> None:
        """Leave a stage out, and what only it leads to: it counts as ended without a chunk."""
        state.runs[node.id] = StageRun(node, None, self._shared.ready.now, ended=True)
        state.finals_left -= node.final
        if not state.finals_left:
            self._on_left_out(state, node.id)
        for target in (*node.batch_targets, *node.chunk_targets):
            if not state.over:
                self._deliver(state, self._graph.nodes[target], node.id, SKIPPED)

    def _start(self, state: RequestState, node: Node, inputs: Inputs, collected: Any) -> None:
        """Mark a stage, and all that consume with it, submitted; then hand them to their submitters (OR-2)."""
        run = self._mark(state, node)
        followers = self._mark_followers(state, node) if node.chunk_targets else ()
        if run is not None and not state.over:
            self._make(state, run, inputs, collected)
        for follower in followers:
            if not state.over:
                self._make(state, follower, _NOTHING, ())

    def _mark_followers(self, state: RequestState, first: Node) -> list[StageRun]:
        """Mark what chunk edges lead to, nearest first."""
        followers: list[StageRun] = []
        todo = list(first.chunk_targets)
        while todo and not state.over:
            node = self._graph.nodes[todo.pop(0)]
            run = self._mark(state, node) if node.id not in state.runs else None
            if run is not None:
                followers.append(run)
                todo += node.chunk_targets
        return followers

    def _mark(self, state: RequestState, node: Node) -> StageRun | None:
        replica = self._replicas.pick(node.id)
        if replica is None:
            self._fail(state, node.id, self._replicas.why_lost(node.id), None)
            return None
        run = state.runs[node.id] = StageRun(node, replica, self._shared.ready.now)
        return run

    def _make(self, state: RequestState, run: StageRun, inputs: Inputs, collected: Any) -> None:
        try:
            payload = self._maker(state, run, inputs, collected)
        except Exception as error:  # noqa: BLE001 — a forward function may raise anything; the others go on (OR-10)
            self._fail(state, run.node.id, "forward_fn", error)
            return
        if collected is not None and hasattr(payload, "__await__"):
            self._make_later(state, run, payload)
        else:
            self._submit(state, run, payload)

    def _submit(self, state: RequestState, run: StageRun, payload: Any) -> None:
        if run.replica is not None and not state.over:
            self._shared.submitters[run.replica].add(state, run, payload)

    def _make_later(self, state: RequestState, run: StageRun, payload: Awaitable[Any]) -> None:
        task = self._shared.spawn(self._await_payload(state, run, payload), f"payload {run.node.id} {state.wire}")
        state.making = state.making or set()
        state.making.add(task)
        task.add_done_callback(state.making.discard)
        if asyncio.iscoroutine(payload):  # a task that is cancelled before it began never awaits it
            task.add_done_callback(lambda _task: payload.close())

    async def _await_payload(self, state: RequestState, run: StageRun, payload: Awaitable[Any]) -> None:
        try:
            made = await payload
        except asyncio.CancelledError as error:
            if own_task().cancelling():
                raise
            self._shared.ready.post(self._not_made, state, run, error)
        except Exception as error:  # noqa: BLE001 — see _make
            self._shared.ready.post(self._not_made, state, run, error)
        else:
            self._shared.ready.post(self._submit, state, run, made)

    def _not_made(self, state: RequestState, run: StageRun, error: BaseException) -> None:
        if not state.over:
            self._fail(state, run.node.id, "forward_fn", error)
