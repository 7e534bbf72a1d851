"""The CSP report (LG-2): checks the books on every report of the monitor, and what no single one shows."""

from __future__ import annotations

from collections.abc import Iterator

from stagewire_logs.csp_episodes import Episodes
from stagewire_logs.csp_leaks import Leaks
from stagewire_logs.facts import Fact, Permit, Side, State, claims_of
from stagewire_logs.results import CspPoint, CspReport, Usage

MAX_POINTS = 400
"""Points of the course that are kept; further ones thin it out evenly."""


class CspRun:
    """Follows one run, from ``csp.started`` to ``csp.finished``, in bounded memory.

    Args:
        pipeline: Its name.
        start: When it was first seen.
    """

    def __init__(self, pipeline: str, start: str) -> None:
        self.pipeline = pipeline
        self.finished = False
        self._balanced: bool | None = None
        self._start = self._end = start
        self._reports = 0
        self._violations = 0
        self._violation = ""
        self._usage = {name: _Use() for name in ("t_slot", "q_slot", "physical", "q_pending")}
        self._course = _Course()
        self._episodes = Episodes()
        self._leaks = Leaks()
        self._lateness = 0.0
        self._last: State | None = None

    def feed(self, fact: Fact) -> None:
        """Take a report of the monitor or the final account."""
        self._end = fact.stamp
        if fact.event == "csp.finished":
            self.finished = True
            self._balanced = fact.detail.get("balanced")
        state = fact.state
        if state is None:
            return
        self._reports += 1
        for fault in _faults(self._last, state):
            self._violations += 1
            self._violation = self._violation or f"{fact.stamp}: {fault}"
        self._leaks.look(fact.stamp, state, final=self.finished)
        self._episodes.look(fact.stamp, state, final=self.finished)
        self._lateness = max(self._lateness, state.lateness)
        for name, permit in _permits(state):
            self._usage[name].look(permit)
        self._course.add(_point(fact.stamp, state))
        self._last = state

    def report(self) -> CspReport:
        """Return what was found so far."""
        last = self._last
        return CspReport(
            pipeline=self.pipeline,
            start=self._start,
            end=self._end,
            finished=self.finished,
            balanced=self._balanced,
            reports=self._reports,
            violations=self._violations,
            violation=self._violation,
            pairs=last.t.consumed if last else 0,
            t=_totals(last.t) if last else {},
            q=_totals(last.q) if last else {},
            requests=_requests(last) if last else {},
            usage=[use.report(name) for name, use in self._usage.items() if use.cap],
            episodes=self._episodes.found(),
            leaks=self._leaks.found(finished=self.finished),
            lateness=self._lateness,
            course=self._course.points(),
        )


class _Use:
    """How much of one capacity is used."""

    def __init__(self) -> None:
        self.cap = 0
        self._sum = self._count = self._high = 0

    def look(self, permit: Permit) -> None:
        self.cap = permit.cap
        self._sum += permit.held
        self._count += 1
        self._high = max(self._high, permit.held)

    def report(self, name: str) -> Usage:
        return Usage(name, self.cap, self._sum / max(1, self._count), self._high)


class _Course:
    """Points over time, thinned out by half whenever there are too many."""

    def __init__(self) -> None:
        self._points: list[CspPoint] = []
        self._stride = 1
        self._count = 0
        self._newest: CspPoint | None = None

    def add(self, point: CspPoint) -> None:
        if self._count % self._stride == 0:
            self._points.append(point)
        self._count += 1
        self._newest = point
        if len(self._points) > MAX_POINTS:
            self._points = self._points[::2]
            self._stride *= 2

    def points(self) -> list[CspPoint]:
        newest = self._newest
        return [*self._points, newest] if newest is not None and newest is not self._points[-1] else self._points


def _faults(before: State | None, now: State) -> Iterator[str]:
    """Say what does not add up in a report (CSP-14), or went backwards since the one before."""
    for name, side in (("T", now.t), ("Q", now.q)):
        settled = side.consumed + side.written_off + side.expired
        owned = side.slots.held + side.slots.waiting
        if side.produced != settled + owned:
            yield f"{name}: {side.produced} produced, but {settled} settled and {owned} held or waiting"
        if side.depth > side.slots.held:
            yield f"{name}: {side.depth} in stock, but only {side.slots.held} slots held"
    for name, permit in _permits(now):
        if permit.cap != permit.free + permit.held or permit.free < 0:
            yield f"{name}: cap {permit.cap}, but {permit.free} free and {permit.held} held"
    done = now.requests.answered + now.requests.failed + now.requests.given_up
    if now.requests.sent != done + now.requests.in_flight:
        yield f"requests: {now.requests.sent} sent, but {done} done and {now.requests.in_flight} in flight"
    if now.t.consumed != now.q.consumed:
        yield f"pairs: {now.t.consumed} T consumed, but {now.q.consumed} Q"
    if before is not None and any(later < former for former, later in zip(_sums(before), _sums(now), strict=True)):
        yield "a total went backwards"


def _permits(state: State) -> Iterator[tuple[str, Permit]]:
    yield "t_slot", state.t.slots
    yield "q_slot", state.q.slots
    yield "physical", state.physical
    yield "q_pending", state.q_pending


def _sums(state: State) -> tuple[int, ...]:
    sides = [number for side in (state.t, state.q) for number in _totals(side).values()]
    return (*sides, state.requests.sent, state.requests.answered, state.requests.failed, state.requests.given_up)


def _totals(side: Side) -> dict[str, int]:
    return {
        "produced": side.produced,
        "consumed": side.consumed,
        "written_off": side.written_off,
        "expired": side.expired,
    }


def _requests(state: State) -> dict[str, int]:
    sent = state.requests
    return {"sent": sent.sent, "answered": sent.answered, "failed": sent.failed, "given_up": sent.given_up}


def _point(stamp: str, state: State) -> CspPoint:
    return CspPoint(
        stamp, state.t.depth, state.q.depth, state.physical.held, state.q_pending.held, claims_of(state).waiting
    )
