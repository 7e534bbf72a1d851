"""The four clocks of a request (OR-17): one timer each, looked at only when it may have run out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from stagewire import StageId
from stagewire_orchestrator.ledger import RequestState, StageRun
from stagewire_orchestrator.options import Clocks
from stagewire_orchestrator.ready import ReadyQueue

OnExpired = Callable[[RequestState, StageId, str], None]
"""Takes the request, the stage that is waited for, and what ran out."""

_TOLERANCE = 1e-6
"""Timers may fire this much early; seconds."""


class Watch:
    """Looks at the clocks of each request. An output costs no timer: the look finds out how long it was silent.

    Attributes:
        active: Whether there is any clock; else no look is needed.
    """

    def __init__(self, clocks: Clocks, ready: ReadyQueue, on_expired: OnExpired) -> None:
        self._clocks = clocks
        self._ready = ready
        self._on_expired = on_expired
        self.active = any(value is not None for value in clocks.model_dump().values())

    def look(self, state: RequestState) -> None:
        """End the request if a clock has run out; else come back when the next one may have."""
        if state.over:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        due = sorted(self._due(state, now))
        if not due:
            return
        when, name, seconds = due[0]
        if when <= now + _TOLERANCE:
            stage = blamed(state)
            self._on_expired(state, stage, f"{_WORDS[name]} within {seconds:g} s (clock {name}), waiting for {stage!r}")
            return
        if state.timer is not None:
            state.timer.cancel()
        state.timer = loop.call_at(when, self._ready.post, self.look, state)

    def _due(self, state: RequestState, now: float) -> Iterator[tuple[float, str, float]]:
        clocks, started, last = self._clocks, state.started_at, state.last_output_at
        if clocks.total is not None:
            yield state.added_at + clocks.total, "total", clocks.total
        if started is None:
            if clocks.queued is not None:
                yield state.added_at + clocks.queued, "queued", clocks.queued
        elif last is None:
            if clocks.first_output is not None:
                yield started + clocks.first_output, "first_output", clocks.first_output
        elif clocks.between is not None:
            silent_since = now if state.lane.outputs else max(last, state.lane.taken_at)
            yield silent_since + clocks.between, "between", clocks.between


_WORDS = {
    "total": "not done",
    "queued": "not taken by the first stage",
    "first_output": "no first output",
    "between": "no further output",
}


def blamed(state: RequestState) -> StageId:
    """Return the stage that the request waits for: one that is at work rather than starved or held back."""
    return at_work(state)[0]


def at_work(state: RequestState) -> list[StageId]:
    """Return the stages that are at work, or when there is none, those that have not ended."""
    open_runs = [run for run in state.runs.values() if not run.ended]
    working = [run for run in open_runs if _doing(state, run) == "running"]
    return [run.node.id for run in working or open_runs]


def _doing(state: RequestState, run: StageRun) -> str:
    return run.replica.doing(state.wire) if run.replica is not None else "running"
