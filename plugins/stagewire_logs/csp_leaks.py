"""Finds slots and permits that were acquired and never released, and when.

A claimed pair holds one slot of each side, and everything else that holds a slot lies in stock. So one side's slots
that are neither in stock nor matched by the other side's are leaked, unless they were handed over in that very moment;
and what is still held when the run has finished is leaked in any case. A leak is for good: the count of what is leaked
is the least that was seen from some moment on, and that moment is when it happened, as exactly as reports come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stagewire_logs.facts import State
from stagewire_logs.results import Leak

PERSISTS = 3
"""Reports in a row that must show a leak, unless the run has finished."""


@dataclass(slots=True)
class _Level:
    """From some report on at least ``value`` were out."""

    value: int
    since: str
    reports: int


class Floor:
    """The least value from each moment on: a stack of rising levels, as many as the value is high at most."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    def look(self, stamp: str, value: int) -> None:
        """Take the next value."""
        level = _Level(value, stamp, 0)
        while self._levels and self._levels[-1].value >= value:
            fallen = self._levels.pop()
            level.since, level.reports = fallen.since, fallen.reports
        if value > 0:
            self._levels.append(level)
        for each in self._levels:
            each.reports += 1

    def steps(self, reports: int) -> Iterator[tuple[int, str]]:
        """Yield by how much it rose for good, and when, where at least so many reports show it."""
        below = 0
        for level in self._levels:
            if level.reports >= reports:
                yield level.value - below, level.since
                below = level.value


class Leaks:
    """Looks for leaks in the reports of one run."""

    def __init__(self) -> None:
        self._sides = {"t_slot": Floor(), "q_slot": Floor()}
        self._others = {"pair": Floor(), "physical": Floor(), "q_pending": Floor()}

    def look(self, stamp: str, state: State, *, final: bool) -> None:
        """Take a report; the final one is the account after everything was let go of."""
        t, q = state.t.slots.held - state.t.depth, state.q.slots.held - state.q.depth
        if final:
            t, q = state.t.slots.held, state.q.slots.held
        pairs = min(t, q)
        self._sides["t_slot"].look(stamp, t - pairs)
        self._sides["q_slot"].look(stamp, q - pairs)
        for name, value in (("pair", pairs), ("physical", state.physical.held), ("q_pending", state.q_pending.held)):
            self._others[name].look(stamp, value)

    def found(self, *, finished: bool) -> list[Leak]:
        """Return the leaks. While a run goes on, pairs and permits may well be in use: only slots are told."""
        floors = {**self._sides, **(self._others if finished else {})}
        reports = 1 if finished else PERSISTS
        return [Leak(name, count, since) for name, floor in floors.items() for count, since in floor.steps(reports)]
