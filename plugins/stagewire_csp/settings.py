"""How a run behaves, beside its capacity."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewire_csp.failures import FailurePolicy
from stagewire_csp.gate import WaterMarks


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run behaves. Times are in seconds and greater than 0.

    Attributes:
        t_marks: When production of T pauses and goes on; ``None``: at as many as there are slots, and at half of that.
        q_marks: The same for Q.
        t_ttl: How long a T is good; ``None``: for ever.
        q_ttl: The same for Q.
        reply_timeout: How long an answer may take; ``None``: however long.
        deadline: How long a stop may take.
        monitor_interval: Between two reports of the monitor.
        stall_after: Without any progress, after which a run counts as stalled.
        failures: How failures of roles are borne.
    """

    t_marks: WaterMarks | None = None
    q_marks: WaterMarks | None = None
    t_ttl: float | None = None
    q_ttl: float | None = None
    reply_timeout: float | None = None
    deadline: float = 30.0
    monitor_interval: float = 10.0
    stall_after: float = 30.0
    failures: FailurePolicy = field(default_factory=FailurePolicy)

    def __post_init__(self) -> None:
        for name in ("t_ttl", "q_ttl", "reply_timeout", "deadline", "monitor_interval", "stall_after"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name}={seconds}: it must be greater than 0 seconds")
