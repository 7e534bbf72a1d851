"""What happens when a role fails: it is counted and reported, tried again after a while, and given up in the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from stagewire import describe

Role = Literal["produce", "send", "receive", "consume"]
"""What a role was doing."""

KEPT = 100
"""How many failures a report names; the others are only counted."""


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """How failures of roles are borne.

    Attributes:
        backoff: Seconds that a worker pauses after a failure, greater than 0; doubled with each failure in a row.
        longest: The longest such pause, in seconds.
        give_up: After how many failures of one kind in a row, over all workers, the run is stopped; ``None``: never.
    """

    backoff: float = 0.1
    longest: float = 10.0
    give_up: int | None = 50

    def __post_init__(self) -> None:
        if not 0 < self.backoff <= self.longest:
            raise ValueError(f"backoff={self.backoff}, longest={self.longest}: it must be 0 < backoff <= longest")
        if self.give_up is not None and self.give_up < 1:
            raise ValueError(f"give_up={self.give_up}: it must be at least 1, or None")

    def pause(self, streak: int) -> float:
        """Return the seconds to pause after the ``streak``-th failure in a row of one worker, from 1."""
        doublings = min(streak - 1, 60)  # beyond that a float would overflow one day
        return min(self.backoff * 2.0**doublings, self.longest)


class RoleFailed(Exception):
    """A role raised an exception, which is ``__cause__``; the runtime's own faults are never wrapped in this."""

    def __init__(self, role: Role, cause: str) -> None:
        self.role = role
        self.cause = cause
        super().__init__(f"{role} failed: {cause}")

    @classmethod
    def of(cls, role: Role, error: BaseException) -> RoleFailed:
        """Wrap what the role raised."""
        failure = cls(role, describe(error))
        failure.__cause__ = error
        return failure


class FailureBook:
    """Counts the failures of one run.

    Args:
        policy: When to give up.
    """

    def __init__(self, policy: FailurePolicy) -> None:
        self.policy = policy
        self.counts: Counter[Role] = Counter()
        """How often each role has failed."""
        self.kept: list[RoleFailed] = []
        """The first failures, at most ``KEPT``."""
        self._in_a_row: Counter[Role] = Counter()

    def succeeded(self, role: Role) -> None:
        """Note that a role did its work once."""
        self._in_a_row[role] = 0

    def failed(self, failure: RoleFailed) -> bool:
        """Note a failure; returns whether there were too many in a row, once."""
        self.counts[failure.role] += 1
        self._in_a_row[failure.role] += 1
        if len(self.kept) < KEPT:
            self.kept.append(failure)
        return self._in_a_row[failure.role] == self.policy.give_up

    @property
    def total(self) -> int:
        """How often roles have failed."""
        return self.counts.total()
