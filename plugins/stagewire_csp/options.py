"""The sections of ``pipeline: csp``."""

from __future__ import annotations

from typing import Self

from pydantic import ByteSize, Field, PositiveFloat, PositiveInt, model_validator

from stagewire import Options, StageBlock
from stagewire_csp.capacity import MEMORY_PER_PHYSICAL, PROFILE_VARIABLE, PROFILES, Capacity, profile_of_environment
from stagewire_csp.failures import FailurePolicy
from stagewire_csp.gate import WaterMarks
from stagewire_csp.host import HostLimits
from stagewire_csp.settings import RunSettings


class ProducerBlock(StageBlock):
    """``t:`` — the S role."""


class RequesterBlock(StageBlock):
    """``q:`` — the P role."""


class ConsumerBlock(StageBlock):
    """``c:`` — the C role."""


class CapacityOptions(Options):
    """``capacity:`` (CSP-9)."""

    physical: PositiveInt | None = Field(
        None, description="Local heavy work at once. Given here it is taken as it is; memory does not cap it."
    )
    profile: str | None = Field(
        default_factory=profile_of_environment,
        description=f"How large, when physical is not given: {', '.join(PROFILES)}; memory caps it."
        f" Default: the environment variable {PROFILE_VARIABLE}, else derived from CPU and memory.",
    )
    memory_per_physical: ByteSize = Field(
        ByteSize(MEMORY_PER_PHYSICAL), gt=0, description="Memory that one unit of physical work needs."
    )
    t_slot: PositiveInt | None = Field(None, description="T in stock or in use. Default: 4 for each physical.")
    q_slot: PositiveInt | None = Field(None, description="Q in stock or in use. Default: 4 for each physical.")
    q_pending: PositiveInt | None = Field(None, description="Requests in flight. Default: 8 for each physical.")

    def decide(self, host: HostLimits) -> Capacity:
        """Return the capacities on this host."""
        return Capacity.decide(host, **self.model_dump())


class MarksOptions(Options):
    """The water marks of one side."""

    low: int = Field(ge=0, description="Production goes on at this depth of stock or less.")
    high: PositiveInt = Field(description="Production pauses at this depth of stock or more.")

    @model_validator(mode="after")
    def _low_is_below_high(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be less than high ({self.high})")
        return self


class GateOptions(Options):
    """``gate:`` (CSP-8)."""

    t: MarksOptions | None = Field(None, description="Default: high is all slots, low is half of them.")
    q: MarksOptions | None = Field(None, description="Default: high is all slots, low is half of them.")


class TtlOptions(Options):
    """``ttl:`` (CSP-7), in seconds."""

    t: PositiveFloat | None = Field(None, description="How long a T is good. Default: for ever.")
    q: PositiveFloat | None = Field(None, description="How long a Q is good. Default: for ever.")


class MonitorOptions(Options):
    """``monitor:`` (CSP-16), in seconds."""

    interval: PositiveFloat = Field(10.0, description="Between two csp.monitor events.")
    stall_after: PositiveFloat = Field(30.0, description="Without any progress, after which a stall is reported.")


class FailureOptions(Options):
    """``failures:`` — how failing roles are borne."""

    backoff: PositiveFloat = Field(0.1, description="Seconds of a worker's first pause after a failure; it doubles.")
    longest: PositiveFloat = Field(10.0, description="Seconds of its longest pause.")
    give_up: PositiveInt | None = Field(
        50, description="The run is stopped after this many failures of one kind in a row; null: never."
    )

    @model_validator(mode="after")
    def _backoff_is_not_the_longer(self) -> Self:
        if self.backoff > self.longest:
            raise ValueError(f"backoff ({self.backoff}) must not be more than longest ({self.longest})")
        return self


class CspOptions(Options):
    """The sections of ``pipeline: csp``."""

    t: ProducerBlock = Field(description="Makes T: local heavy work.")
    q: RequesterBlock = Field(description="Sends requests and receives Q, the answers.")
    c: ConsumerBlock = Field(description="Consumes one T together with one Q.")
    capacity: CapacityOptions = Field(default_factory=CapacityOptions)
    gate: GateOptions = Field(default_factory=GateOptions)
    ttl: TtlOptions = Field(default_factory=TtlOptions)
    failures: FailureOptions = Field(default_factory=FailureOptions)
    monitor: MonitorOptions = Field(default_factory=MonitorOptions)
    reply_timeout: PositiveFloat | None = Field(None, description="Seconds that an answer may take.")
    deadline: PositiveFloat = Field(20.0, description="Seconds that a stop may take before work is cut off.")

    def settings(self) -> RunSettings:
        """Return them as the runtime takes them."""
        return RunSettings(
            t_marks=_marks(self.gate.t),
            q_marks=_marks(self.gate.q),
            t_ttl=self.ttl.t,
            q_ttl=self.ttl.q,
            reply_timeout=self.reply_timeout,
            deadline=self.deadline,
            monitor_interval=self.monitor.interval,
            stall_after=self.monitor.stall_after,
            failures=FailurePolicy(**self.failures.model_dump()),
        )


def _marks(options: MarksOptions | None) -> WaterMarks | None:
    return None if options is None else WaterMarks(options.low, options.high)
