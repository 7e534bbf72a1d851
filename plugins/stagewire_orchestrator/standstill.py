"""Ends requests that stand still for ever: a zip whose inputs come at different rates starves one branch of what the
other holds back, and no stage is at fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stagewire import StageId
from stagewire_orchestrator.graph import Graph
from stagewire_orchestrator.ledger import RequestState, StageRun
from stagewire_orchestrator.ready import ReadyQueue

LOOK_EVERY = 5.0
"""Seconds between two looks at a request."""

PATIENCE = 60.0
"""Seconds for which nothing may move although no stage is at work; a broker that restarts takes less."""

OnStanding = Callable[[RequestState, StageId, str], None]
"""Takes the request, the zip, and what stands still."""


class Standstill:
    """Looks now and then at requests that pass a zip of chunk edges; others cannot come to this.

    Args:
        graph: The graph.
        ready: The dispatcher's queue.
        on_standing: Ends a request.
    """

    def __init__(self, graph: Graph, ready: ReadyQueue, on_standing: OnStanding) -> None:
        self._ready = ready
        self._on_standing = on_standing
        zips = (
            node.id for node in graph.nodes.values() if node.chunked and node.join == "zip" and len(node.sources) > 1
        )
        self._zip: StageId | None = next(zips, None)

    @property
    def active(self) -> bool:
        """Whether the graph has such a zip; else no request needs to be watched."""
        return self._zip is not None

    def watch(self, state: RequestState) -> None:
        """Look at a request from now on."""
        if not state.over:
            self._later(state, None, 0.0)

    def _look(self, state: RequestState, before: tuple[int, ...] | None, since: float) -> None:
        if state.over or self._zip is None:
            return
        now = asyncio.get_running_loop().time()
        runs = [run for run in state.runs.values() if not run.ended]
        moved = tuple(_moves(state, run) for run in runs)
        if _at_work(state, runs) or moved != before:
            self._later(state, moved, now)
        elif now - since < PATIENCE:
            self._later(state, moved, since)
        else:
            self._on_standing(state, self._zip, _standing(state, runs))

    def _later(self, state: RequestState, moved: tuple[int, ...] | None, since: float) -> None:
        loop = asyncio.get_running_loop()
        state.look = loop.call_later(LOOK_EVERY, self._ready.post, self._look, state, moved, since)


def _at_work(state: RequestState, runs: list[StageRun]) -> bool:
    """Whether a stage works, or the client has outputs to take."""
    doing = [run.replica.doing(state.wire) for run in runs if run.replica is not None]
    return bool(state.lane.outputs) or not doing or "running" in doing


def _moves(state: RequestState, run: StageRun) -> int:
    return run.replica.moves(state.wire) if run.replica is not None else 0


def _standing(state: RequestState, runs: list[StageRun]) -> str:
    named: dict[str, list[str]] = {"starved": [], "blocked": []}
    for run in runs:
        if run.replica is not None:
            named.setdefault(run.replica.doing(state.wire), []).append(repr(run.node.id))
    return (
        f"nothing has moved for {PATIENCE:g} s: {', '.join(named['starved'])} wait for chunks that"
        f" {', '.join(named['blocked'])} cannot send. The inputs of a zip must come at one rate; else join all or any"
    )
