"""The orchestrator's public face."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stagewire import Closed, Metric, StageId, StillHeld
from stagewire.lifecycle import TaskRegistry
from stagewire_orchestrator.clients import ForwardFn, PayloadFn, StageClient, call
from stagewire_orchestrator.door import Door, WireId
from stagewire_orchestrator.engine import Engine
from stagewire_orchestrator.graph import Graph, line
from stagewire_orchestrator.handler import Abort, Add
from stagewire_orchestrator.ledger import RequestState
from stagewire_orchestrator.metrics import measure
from stagewire_orchestrator.options import Clocks, Limits
from stagewire_orchestrator.outbox import Outbox
from stagewire_orchestrator.outputs import OrchOutput
from stagewire_orchestrator.payloads import Maker, from_forward_fn, from_submissions
from stagewire_orchestrator.ready import ReadyQueue
from stagewire_orchestrator.replicas import Replica, Replicas, by_stage
from stagewire_orchestrator.reports import Reports
from stagewire_orchestrator.shared import Shared

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_CANCEL_EVERY = 0.1
"""Seconds that a task has to end before it is cancelled once more."""

Stages = Sequence[StageClient] | Mapping[Any, StageClient | Sequence[StageClient]]
"""By position from 0, or by stage id; a sequence in place of a client holds the replicas of a stage."""


class Orchestrator:
    """Carries requests across stages and their outputs to the client.

    Belongs to one event loop. ``async with`` starts it and shuts it down. Every method may be cancelled.

    Each request that `add_request` admitted has exactly one output that is ``finished``, whatever happens; an error is
    an output with ``error``, not an exception.

    Args:
        stages: The stage clients: a sequence, whose stages are then 0, 1, …; or a mapping of each stage to its client,
            or to a list of replicas.
        forward_fn: ``forward_fn(next_stage, prompt, collected)`` returns the payload for the next stage, or an
            awaitable of it. ``collected`` is the list of what the stage before put out; behind a join the mapping of
            each stage to its list, for a zip the list of tuples. Not called for the first stage, which gets the prompt;
            ``None`` when there is no other.
        final_stages: The stages whose outputs go to the client.
        graph: How the stages are connected. Default: one behind the other on batch edges. Its finals are
            ``final_stages``.
        limits: Bounds (OR-16).
        clocks: Deadlines (OR-17).
        payload: Makes the payload of every stage, in place of ``forward_fn`` and the bare prompt.
        wire_id: Makes the id that clients see, from the request's and the number of its admission. Default: the
            request's id itself; then a client without ``abort`` cannot tell an aborted use of an id from the next.
        log: Where events go (OR-18). Default: warnings on standard error.

    Raises:
        ConfigError: The graph is wrong.
        TypeError: A client lacks one of the two methods.
    """

    def __init__(
        self,
        stages: Stages,
        forward_fn: ForwardFn | None,
        final_stages: Collection[StageId],
        *,
        graph: Graph | None = None,
        limits: Limits | None = None,
        clocks: Clocks | None = None,
        payload: PayloadFn | None = None,
        wire_id: WireId | None = None,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        clients = by_stage(stages)
        limits, clocks = limits or Limits(), clocks or Clocks()
        reports = Reports(log)
        self._reports = reports
        self._replicas = Replicas(clients)
        self._patience = limits.release_timeout
        self._tasks = TaskRegistry("the orchestrator", log=log)
        self._door = Door(limits.requests, wire_id or _same_id, wait=limits.when_full == "wait", patience=clocks.queued)
        self._outbox = Outbox(limits, self._door.free, None if clocks.between is None else self._now)
        self._ledger: dict[str, RequestState] = {}
        shared = Shared(limits, self._spawn, self._door, ReadyQueue(), self._outbox, reports, ledger=self._ledger)
        self._engine = Engine(
            shared,
            graph=_checked(graph, clients, final_stages),
            replicas=self._replicas,
            maker=_maker(forward_fn, payload, clients),
            clocks=clocks,
        )
        self._started = False
        self._closing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    @property
    def dropped_outputs(self) -> int:
        """How many outputs came for a request that was not (or no longer) in that stage (OR-6)."""
        return self._reports.counters.dropped_outputs

    @property
    def request_states(self) -> Mapping[str, RequestState]:
        """The ledger, for looking at: requests that have not ended, by the id that clients see (OR-4)."""
        return self._ledger

    async def start(self) -> None:
        """Start the clients that have a ``start``, then every worker. Once only; on an error everything is undone."""
        if self._closing is not None:
            raise Closed("the orchestrator was shut down: make a new one")
        if self._started:
            raise RuntimeError("the orchestrator was already started")
        self._started = True
        try:
            await asyncio.gather(*(call(replica.start) for replica in self._replicas))
        except BaseException:
            await self.shutdown()
            raise
        for name, worker in self._engine.workers():
            self._spawn(worker, name)

    async def add_request(self, request_id: str, prompt: Any) -> None:
        """Queue one request, and nothing else (OR-1). Waits or refuses while too many are in flight (OR-16).

        Raises:
            RequestRefused: The id is in use, or too many requests are in flight and ``limits`` say to refuse, or the
                clock ``queued`` ran out meanwhile.
            Closed: The orchestrator was shut down.
        """
        if not isinstance(request_id, str):
            raise TypeError(f"a request id is a str, not {request_id!r}")
        added_at = self._now()
        wire = self._door.enter_now(request_id) or await self._door.enter(request_id)
        self._engine.inbox.put(Add(request_id, wire, prompt, added_at))

    async def next_output(self, timeout: float | None = None) -> OrchOutput:
        """Return the next output of any request; each request's own come in order (OR-7).

        Raises:
            TimeoutError: There was none within ``timeout`` seconds (``None``: wait for ever). None is lost by that.
            Closed: The orchestrator was shut down and every output was taken.
        """
        output = self._outbox.pop()
        if output is not None:
            return output
        async with asyncio.timeout(timeout):
            return await self._outbox.get()

    async def abort(self, request_id: str) -> bool:
        """End a request in CANCEL; returns once every stage has let go of it, and the id is usable again (OR-12).

        What still waited for the client is dropped. Returns whether there was such a request. Cancelling the call does
        not take the abort back.
        """
        if self._door.abort_waiting(request_id):
            return True
        if self._closing is not None:
            await self.shutdown()
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._engine.inbox.put(Abort(request_id, waiter))
        return await waiter

    async def shutdown(self) -> None:
        """Cancel and await every task, close the clients, and end what is in flight in CANCEL (OR-8). Idempotent.

        Outputs that wait can still be taken. Cancelling the call does not stop the shutdown; call again to wait for it.

        Raises:
            StillHeld: A client kept a task from ending, in spite of many cancels. Call again to try again.
        """
        if self._closing is None or (self._closing.done() and _failed(self._closing)):
            self._closing = asyncio.get_running_loop().create_task(self._close(), name="shutdown")
            self._closing.add_done_callback(_failed)
        await asyncio.shield(self._closing)

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the counters, the live size of every table, and what each replica did (OR-18)."""
        stats = {**self._reports.stats(), "tables": self._engine.tables()}
        for replica in self._replicas:
            name = f"stage {replica.stage}/{replica.number}"
            stats[name] = replica.stats()
            stats |= {f"{name} {part}": dict(counts) for part, counts in replica.client_stats().items()}
        return stats

    def metrics(self) -> Iterator[Metric]:
        """Return the same as metrics (OR-18). Call it on the event loop."""
        return measure(self._reports, self._engine.tables(), self._replicas)

    async def _close(self) -> None:
        self._door.close()
        self._tasks.close()
        deadline = self._now() + self._patience
        while len(self._tasks) and self._now() < deadline:
            self._tasks.cancel_all()  # again and again: a client may swallow one
            with suppress(TimeoutError):
                async with asyncio.timeout(_CANCEL_EVERY):
                    await self._tasks.join()
        await asyncio.gather(*(self._close_client(replica) for replica in self._replicas))
        self._engine.cancel_everything()
        if len(self._tasks):
            raise StillHeld("the orchestrator", [f"task {name}" for name in self._tasks.names])

    async def _close_client(self, replica: Replica) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await call(replica.close)
        except Exception as error:  # noqa: BLE001 — one client must not keep the others open
            self._reports.hook_failed(replica, "close", error)

    def _spawn(self, worker: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        return self._tasks.spawn(worker, name=name)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _same_id(request_id: str, _number: int) -> str:
    return request_id


def _checked(graph: Graph | None, clients: Collection[StageId], finals: Collection[StageId]) -> Graph:
    if graph is None:
        return line(tuple(clients), finals)
    if set(clients) != set(graph.stages) or set(finals) != graph.finals:
        raise ValueError("the graph has other stages, or other final stages, than the orchestrator was given")
    return graph


def _maker(forward_fn: ForwardFn | None, payload: PayloadFn | None, clients: Collection[StageId]) -> Maker:
    if payload is not None:
        return from_submissions(payload)
    if forward_fn is None and len(clients) > 1:
        raise TypeError("an orchestrator of several stages needs a forward_fn, or payload")
    return from_forward_fn(forward_fn or _never)


def _never(_stage: StageId, _prompt: Any, _collected: Any) -> Any:
    raise AssertionError("the only stage has no successor")


def _failed(closing: asyncio.Task[None]) -> bool:
    """Return whether it failed; looking at the error here keeps the loop from reporting it as unseen."""
    return closing.cancelled() or closing.exception() is not None
