"""Finds what lasted: starvation of one side, stalls, and times without any report of the monitor."""

from __future__ import annotations

from stagewire_logs.facts import State, claims_of
from stagewire_logs.results import Episode

STALLED = 30.0
"""Seconds without any progress that count as a stall, unless the run itself says so earlier."""

STARVED = 1.0
"""Seconds of one-sided starvation that are listed."""

SILENT = 5
"""Reports that must be missing in a row to be told."""

MAX_EPISODES = 200
"""Episodes of one run that are kept; the shortest make room."""


class Episodes:
    """Looks at each report beside those before it."""

    def __init__(self) -> None:
        self._found: list[Episode] = []
        self._starved: dict[str, tuple[str, float]] = {}
        self._progress: tuple[int, ...] | None = None
        self._still = ("", 0.0)
        self._stalled: Episode | None = None
        self._before: tuple[str, float] | None = None
        self._interval = 0.0
        self._uptime = 0.0

    def look(self, stamp: str, state: State, *, final: bool) -> None:
        """Take a report."""
        if not final:
            self._gap(stamp, state.uptime)
        for side in ("t", "q"):
            self._starvation(side, stamp, state, final=final)
        self._stall(stamp, state, final=final)
        self._before = (stamp, state.uptime)
        self._uptime = state.uptime

    def found(self) -> list[Episode]:
        """Return all episodes by their beginning, those included that have not ended."""
        going_on = [
            Episode("starvation", side, start, "", self._uptime - uptime)
            for side, (start, uptime) in self._starved.items()
            if self._uptime - uptime >= STARVED
        ]
        stalled = [self._stalled] if self._stalled is not None else []
        return sorted([*self._found, *going_on, *stalled], key=lambda episode: episode.start)

    def _starvation(self, side: str, stamp: str, state: State, *, final: bool) -> None:
        mine, other = (state.t, state.q) if side == "t" else (state.q, state.t)
        if claims_of(state).waiting and not mine.depth and other.depth and not final:
            self._starved.setdefault(side, (stamp, state.uptime))
        elif side in self._starved:
            start, uptime = self._starved.pop(side)
            if state.uptime - uptime >= STARVED:
                self._keep(Episode("starvation", side, start, stamp, state.uptime - uptime))

    def _stall(self, stamp: str, state: State, *, final: bool) -> None:
        failures = sum(state.role_failures.values())
        progress = (state.t.produced, state.q.produced, state.t.consumed, state.requests.sent, failures)
        if progress != self._progress or final:
            if self._stalled is not None:
                self._stalled.end, self._stalled.seconds = stamp, state.uptime - self._still[1]
                self._keep(self._stalled)
                self._stalled = None
            self._progress, self._still = progress, (stamp, state.uptime)
            return
        seconds = state.uptime - self._still[1]
        if seconds >= STALLED or any(flag.kind == "silent_stall" for flag in state.findings):
            self._stalled = Episode("stall", _lacking(state), self._still[0], "", seconds)

    def _gap(self, stamp: str, uptime: float) -> None:
        if self._before is None:
            return
        gap = uptime - self._before[1]
        if self._interval and gap > SILENT * self._interval:
            self._keep(Episode("no_reports", None, self._before[0], stamp, gap))
        elif gap > 0:
            self._interval = max(self._interval, gap)

    def _keep(self, episode: Episode) -> None:
        self._found.append(episode)
        if len(self._found) > MAX_EPISODES:
            self._found.remove(min(self._found, key=lambda each: each.seconds))


def _lacking(state: State) -> str | None:
    if bool(state.t.depth) == bool(state.q.depth):
        return None
    return "q" if state.t.depth else "t"
