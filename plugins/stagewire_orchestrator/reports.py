"""Events and counters of an orchestrator (OR-18)."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stagewire import StageId, describe, emit, fallback_logger
from stagewire_orchestrator.ledger import RequestState, StageRun
from stagewire_orchestrator.outputs import OrchOutput
from stagewire_orchestrator.replicas import Replica

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


@dataclass(slots=True)
class Counters:
    """What happened so far, over all requests."""

    admitted: int = 0
    ended: int = 0
    failed: int = 0
    cancelled: int = 0
    dropped_outputs: int = 0
    dropped_for_client: int = 0


class Reports:
    """Counts, and emits the catalogue's events about requests and stages.

    Args:
        log: Where events go; ``None`` is warnings on standard error, and costs nothing until there is one.

    Attributes:
        counters: What happened so far.
        edges: The counts of each batch edge.
        debug: Whether anybody sees events of the level debug.
    """

    def __init__(self, log: FilteringBoundLogger | None) -> None:
        self._given = log
        self._info = log is not None and log.is_enabled_for(logging.INFO)
        self.debug = log is not None and log.is_enabled_for(logging.DEBUG)
        self.counters = Counters()
        self.edges: dict[tuple[StageId, StageId], dict[str, float]] = {}

    @cached_property
    def _log(self) -> FilteringBoundLogger:
        return self._given or fallback_logger()

    def stats(self) -> dict[str, dict[str, float]]:
        """Return the counters of requests, and of each batch edge."""
        edges = {f"edge {source}->{target}": dict(counts) for (source, target), counts in self.edges.items()}
        return {"requests": asdict(self.counters), **edges}

    def admitted(self, state: RequestState) -> None:
        """A request was registered."""
        self.counters.admitted += 1
        if self.debug:
            emit(self._log, "request.admitted", request_id=state.id)

    def ended(self, state: RequestState, output: OrchOutput, now: float) -> None:
        """A request has its terminal."""
        counters = self.counters
        if output.error is not None and not output.cancelled:
            counters.failed += 1
            fields: dict[str, Any] = {"stage": output.stage_id, "cause": output.error.cause, **_durations(state, now)}
            emit(self._log, "request.failed", request_id=state.id, **fields)
            return
        if output.cancelled:
            counters.cancelled += 1
        else:
            counters.ended += 1
        if self._info:
            what = "request.cancelled" if output.cancelled else "request.ended"
            emit(self._log, what, request_id=state.id, **_durations(state, now))

    def submitted(self, state: RequestState, run: StageRun) -> None:
        """A stage has taken a request."""
        if self.debug and run.replica is not None:
            emit(self._log, "stage.submitted", request_id=state.id, stage=run.node.id, replica=run.replica.number)

    def forwarded(self, state: RequestState, source: StageId, target: StageId, chunks: int) -> None:
        """What a stage collected goes on over a batch edge."""
        counts = self.edges.get((source, target))
        if counts is None:
            counts = self.edges[source, target] = {"requests": 0, "chunks": 0}
        counts["requests"] += 1
        counts["chunks"] += chunks
        if self.debug:
            emit(self._log, "stage.forwarded", request_id=state.id, edge=f"{source}->{target}", chunks=chunks)

    def stage_ended(self, state: RequestState, run: StageRun, now: float) -> None:
        """A stage has ended for a request."""
        run.seconds = round(now - run.started_at, 6)
        if self.debug:
            replica = run.replica.number if run.replica is not None else None
            fields: dict[str, Any] = {"outputs": run.outputs, "seconds": run.seconds}
            emit(self._log, "stage.ended", request_id=state.id, stage=run.node.id, replica=replica, **fields)

    def late(self, replica: Replica, output: Any) -> None:
        """An output belongs to no live request, or to a stage that has ended or was never submitted (OR-6)."""
        self.counters.dropped_outputs += 1
        if self.debug:
            wire = getattr(output, "request_id", None)
            emit(self._log, "request.late_output", request_id=wire, stage=replica.stage, replica=replica.number)

    def dropped_for_client(self, state: RequestState, replica: Replica) -> None:
        """An output was dropped because the client is slow."""
        self.counters.dropped_for_client += 1
        if self.debug:
            ids: dict[str, Any] = {"request_id": state.id, "stage": replica.stage, "replica": replica.number}
            emit(self._log, "request.output_dropped", **ids)

    def slow_release(self, state: RequestState, seconds: float) -> None:
        """Some stage still holds a request that has ended."""
        emit(self._log, "request.release_slow", request_id=state.id, seconds=seconds)

    def lost(self, replica: Replica, requests: int) -> None:
        """A replica can no longer be used (OR-11)."""
        fields: dict[str, Any] = {"cause": replica.lost, "requests": requests}
        emit(self._log, "stage.lost", stage=replica.stage, replica=replica.number, **fields)

    def hook_failed(self, replica: Replica, hook: str, error: BaseException, *, request: str | None = None) -> None:
        """A client's optional method raised; the work goes on."""
        ids: dict[str, Any] = {"stage": replica.stage, "replica": replica.number}
        if request is not None:
            ids["request_id"] = request
        emit(self._log, "stage.hook_failed", hook=hook, cause=describe(error), exc_info=error, **ids)

    def fault(self, error: BaseException) -> None:
        """A worker met an error that it did not foresee, and goes on."""
        emit(self._log, "orchestrator.fault", cause=describe(error), exc_info=error)


def _durations(state: RequestState, now: float) -> dict[str, Any]:
    stages = {stage: run.seconds for stage, run in state.runs.items() if run.seconds is not None}
    return {"seconds": round(max(0.0, now - state.added_at), 6), "stages": stages}
