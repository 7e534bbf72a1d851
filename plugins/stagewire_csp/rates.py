"""What happens per second, from two snapshots (CSP-16)."""

from __future__ import annotations

from dataclasses import dataclass

from stagewire_csp.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second of real time since an earlier snapshot; 0 when nothing happened, never unknown."""

    t_produced: float
    q_produced: float
    pairs: float
    expired: float
    written_off: float
    failures: float

    @classmethod
    def between(cls, before: Snapshot | None, now: Snapshot) -> Rates:
        """Compute them; without an earlier one, everything was 0 at the start."""
        seconds = now.uptime - (before.uptime if before else 0.0)
        earlier = _totals(before) if before else (0,) * len(cls.__slots__)
        changes = (later - former for later, former in zip(_totals(now), earlier, strict=True))
        return cls(*(change / seconds if seconds > 0 else 0.0 for change in changes))


def _totals(state: Snapshot) -> tuple[int, ...]:
    return (
        state.t.produced,
        state.q.produced,
        state.pairs,
        state.t.expired + state.q.expired,
        state.t.written_off + state.q.written_off,
        sum(state.failures.values()),
    )
