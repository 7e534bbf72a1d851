"""The sections of ``pipeline: write-session``. The defaults are those of WS-1."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import ByteSize, Field, PositiveFloat, PositiveInt, model_validator

from stagewire import Options

MIB = 1024 * 1024

Permission = Literal["read", "write", "delete"]


class TimeoutOptions(Options):
    """``session.timeouts:`` — how long a request may take: seconds, seconds for each MiB, and at most."""

    base: PositiveFloat
    per_mib: float = Field(ge=0)
    longest: PositiveFloat

    def of(self, size: int) -> float:
        """Return the timeout of a request about ``size`` bytes."""
        return min(self.base + self.per_mib * size / MIB, self.longest)


REFERENCE_TIMEOUT = TimeoutOptions(base=10, per_mib=1, longest=240)
RAW_TIMEOUT = TimeoutOptions(base=10, per_mib=0.5, longest=120)


class SessionOptions(Options):
    """``session:`` — bounds and timeouts of writing (WS-1). Both sides take them from the same file."""

    submit: ByteSize = Field(ByteSize(32 * MIB), gt=0, description="Bytes that a writer hands over at once.")
    frame: ByteSize = Field(ByteSize(8 * MIB), gt=0, le=8 * MIB, description="The most bytes of one frame.")
    batch_frames: int = Field(4, ge=1, le=64, description="The most frames of one batch.")
    batch: ByteSize = Field(ByteSize(32 * MIB), gt=0, le=64 * MIB, description="About the most bytes of one batch.")
    window: ByteSize = Field(ByteSize(128 * MIB), gt=0, description="Bytes of a session that are not acknowledged.")
    agent_queue: ByteSize = Field(ByteSize(32 * MIB), gt=0, description="Bytes of a session that wait for the disk.")
    senders: PositiveInt = Field(4, description="Batches on their way to one agent at once.")
    reference_timeout: TimeoutOptions = Field(REFERENCE_TIMEOUT, description="Of a batch that goes as a reference.")
    raw_timeout: TimeoutOptions = Field(RAW_TIMEOUT, description="Of a frame, or a small put, that goes as it is.")
    control_timeout: PositiveFloat = Field(240.0, description="Seconds that finalize, wait and abort may take.")
    small_put: ByteSize = Field(
        ByteSize(4 * MIB), gt=0, le=4 * MIB, description="From this size on a file takes a session, not a small put."
    )
    payload: Literal["reference", "raw"] = Field(
        "reference", description="raw: payloads never go through the KV backend."
    )
    idle: PositiveFloat = Field(60.0, description="Seconds of silence after which an agent gives a session up.")
    heartbeat: PositiveFloat = Field(5.0, description="Seconds between two questions whether an agent lives.")

    @model_validator(mode="after")
    def _heartbeats_keep_a_session(self) -> Self:
        if self.heartbeat * 3 > self.idle:
            raise ValueError(f"idle ({self.idle}) must be at least three times heartbeat ({self.heartbeat})")
        return self


class SharedLeaseOptions(Options):
    """``keys:`` — the lease of the temporary keys (LS-5)."""

    ttl: PositiveFloat = Field(180.0, description="Seconds after which keys of a killed controller are gone.")
    cadence: PositiveFloat = Field(60.0, description="Seconds between two keepalives.")


class ReadOptions(Options):
    """``reads:`` — reading in pieces (S3-3)."""

    piece: ByteSize = Field(ByteSize(4 * MIB), gt=0, le=4 * MIB, description="Bytes of one piece.")
    inflight: PositiveInt = Field(4, description="Pieces that are asked for at once.")
    cache: ByteSize = Field(ByteSize(0), ge=0, description="Bytes of pieces that are kept in the KV backend; 0: none.")


class ExportOptions(Options):
    """One export: a directory tree, and how files get into it (WS-17)."""

    root: Path = Field(description="The directory, on the host of each agent. Made when it is missing.")
    mode: Literal["atomic", "in_place"] = Field(
        "atomic", description="atomic: written beside, then renamed. in_place: written where it is."
    )
    fsync: Literal["never", "finalize"] = Field("never", description="Whether finalize waits for the disk.")
    allow: frozenset[Permission] = Field(
        frozenset({"read", "write", "delete"}), description="What may be done: read, write, delete."
    )
    nodes: list[str] = Field(
        default_factory=list, description="Names of the agents. Default: those that have registered (WS-14)."
    )


class WritesOptions(Options):
    """The sections of ``pipeline: write-session``."""

    exports: dict[str, ExportOptions] = Field(min_length=1, description="The exports by their names.")
    agents: Literal["embedded", "separate"] = Field(
        "embedded", description="embedded: every export is served in this process. separate: by `stagewire agent`."
    )
    put: str | None = Field(None, description="Where `stagewire run --input FILE` writes to: EXPORT/PATH.")
    session: SessionOptions = Field(default_factory=SessionOptions)
    keys: SharedLeaseOptions = Field(default_factory=SharedLeaseOptions)
    reads: ReadOptions = Field(default_factory=ReadOptions)
    snapshot: PositiveFloat = Field(30.0, description="Seconds for which the list of agents is good (WS-14).")
    deadline: PositiveFloat = Field(30.0, description="Seconds that an agent's shutdown may take (WS-15).")
