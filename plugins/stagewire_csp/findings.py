"""What is wrong with a run that nothing else would say: each finding is named, and measured (CSP-10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stagewire_csp.inventory import SIDES, SideName
from stagewire_csp.snapshot import Snapshot

FindingKind = Literal["one_sided_starvation", "silent_stall", "expired_stock_holds_every_slot"]
"""The findings that there are."""

OTHER: dict[SideName, SideName] = {"t": "q", "q": "t"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should look at.

    Attributes:
        kind: What it is.
        side: The side that lacks (starvation, stall) or that is stuck (expired stock); ``None`` when it is neither.
        seconds: For how long, as far as samples tell.
        text: The same for a person, with the remedy.
    """

    kind: FindingKind
    side: SideName | None
    seconds: float
    text: str


class Detective:
    """Compares each snapshot with those before it. Read-only.

    Args:
        stall_after: Seconds without any progress after which a run counts as stalled.
    """

    def __init__(self, stall_after: float) -> None:
        self._stall_after = stall_after
        self._progress: tuple[int, ...] | None = None
        self._progress_at = 0.0
        self._starved_since: dict[SideName, float] = {}

    def look(self, now: Snapshot, *, all_expired: frozenset[SideName] = frozenset()) -> list[Finding]:
        """Return what is wrong.

        Args:
            now: The state.
            all_expired: The sides of whose stock nothing is fresh.
        """
        starved = (finding for side in SIDES for finding in self._starvation(side, now))
        stuck = (finding for side in SIDES for finding in _expired_stock(side, now, all_expired))
        return [*starved, *self._stall(now), *stuck]

    def _starvation(self, side: SideName, now: Snapshot) -> Iterator[Finding]:
        other = OTHER[side]
        if not now.claims or now.side(side).depth or not now.side(other).depth:
            self._starved_since.pop(side, None)
            return
        if side not in self._starved_since:
            self._starved_since[side] = now.uptime
            return
        seconds = now.uptime - self._starved_since[side]
        text = f"{now.claims} claims wait for {side.upper()} while {now.side(other).depth} {other.upper()} lie in stock"
        yield Finding("one_sided_starvation", side, seconds, f"{text}: look at what produces {side.upper()}")

    def _stall(self, now: Snapshot) -> Iterator[Finding]:
        progress = (now.t.produced, now.q.produced, now.pairs, now.requests.sent, sum(now.failures.values()))
        if progress != self._progress:
            self._progress, self._progress_at = progress, now.uptime
        seconds = now.uptime - self._progress_at
        if seconds >= self._stall_after:
            state = f"{now.physical.held} physical permits held, {now.requests.in_flight} requests in flight"
            text = f"nothing was produced, sent or consumed for {seconds:.0f} s ({state}): look at what these wait for"
            yield Finding("silent_stall", _lacking(now), seconds, text)


def _lacking(now: Snapshot) -> SideName | None:
    if bool(now.t.depth) == bool(now.q.depth):
        return None
    return "q" if now.t.depth else "t"


def _expired_stock(side: SideName, now: Snapshot, all_expired: frozenset[SideName]) -> Iterator[Finding]:
    state = now.side(side)
    if side in all_expired and not state.slots.free:
        text = (
            f"all {state.depth} {side.upper()} in stock have expired and hold every slot until the other side moves:"
            f" look at what produces {OTHER[side].upper()}, or lengthen the ttl of {side.upper()}"
        )
        yield Finding("expired_stock_holds_every_slot", side, state.age or 0.0, text)
