"""When a lease is kept alive, and what a failure means (LS-3)."""

from __future__ import annotations

from dataclasses import dataclass

from stagewire.errors import StagewireError


class TtlTooShort(StagewireError):
    """A failed keepalive would be noticed too late to do anything about it; the message names the smallest TTL."""


@dataclass(frozen=True, slots=True)
class KeepalivePolicy:
    """How leases of one kind are kept alive. Times are seconds.

    Attributes:
        cadence: From the last success to the next keepalive, a fixed part …
        cadence_share: … plus this share of the lease's TTL …
        jitter: … plus up to this much, drawn anew each time.
        backend_timeout: How long the backend may take for one keepalive.
        timeout: When the actor counts it as failed, whatever the backend does.
        concurrency: How many keepalives of this policy may be under way at once.
        retry_after: How long after a failure it is tried again; ``None``: the lease is given up.
        report_every: Failures of one lease are reported at most this often.
    """

    cadence: float
    cadence_share: float
    jitter: float
    backend_timeout: float
    timeout: float
    concurrency: int
    retry_after: float | None
    report_every: float = 30.0

    def interval(self, ttl: float) -> float:
        """Return the time from a success to the next keepalive, without the jitter."""
        return self.cadence + self.cadence_share * ttl

    @property
    def smallest_ttl(self) -> float:
        """The smallest TTL under which one failed keepalive is noticed, and tried again where it is, before the end."""
        needed = self.cadence + self.jitter + self.timeout
        if self.retry_after is not None:
            needed += self.retry_after + self.timeout
        return needed / (1 - self.cadence_share)

    def require(self, ttl: float) -> None:
        """Raise `TtlTooShort` unless the TTL works."""
        if ttl < self.smallest_ttl:
            raise TtlTooShort(
                f"a TTL of {ttl:g} s is too short to notice a failed keepalive in time:"
                f" {self.smallest_ttl:.4g} s is the smallest that works with this policy"
            )


SHARED = KeepalivePolicy(
    cadence=60, cadence_share=0, jitter=5, backend_timeout=10, timeout=10, concurrency=32, retry_after=None
)
"""For a lease that a whole controller shares: a failure ends it, and whoever relied on it does without."""

GENERAL = KeepalivePolicy(
    cadence=1, cadence_share=1 / 3, jitter=0, backend_timeout=1.5, timeout=2, concurrency=64, retry_after=0.1
)
"""For a lease of one holder: tried again until it has ended."""
