"""Bounds and clocks of an orchestrator; the YAML sections ``limits`` and ``clocks`` are these models."""

from __future__ import annotations

from typing import Literal

from pydantic import ByteSize, Field, PositiveFloat, PositiveInt

from stagewire import Options

MIB = 1024 * 1024


class Limits(Options):
    """How much an orchestrator holds (OR-16). Bytes are counted as `stagewire.codec.weigh` does."""

    requests: PositiveInt = Field(
        65_536, description="Requests in flight: from add_request until the last output was taken or the abort is done."
    )
    queued_outputs: PositiveInt = Field(1_024, description="Outputs of one request that may wait for the client.")
    queued_bytes: ByteSize = Field(
        ByteSize(64 * MIB), gt=0, description="Bytes of one request that may wait, likewise."
    )
    collected_bytes: ByteSize = Field(
        ByteSize(256 * MIB), gt=0, description="Bytes that one request may collect in front of batch edges."
    )
    when_full: Literal["wait", "refuse"] = Field(
        "wait", description="What add_request does while as many requests are in flight as may be."
    )
    slow_client: Literal["block", "drop", "cancel"] = Field(
        "block",
        description="When a request's outputs are not taken: hold its stages back, drop outputs, or cancel the request."
        " The last output is never dropped.",
    )
    release_timeout: PositiveFloat = Field(
        10.0, description="Seconds that a stage has for letting go of an ended request, and for closing."
    )


class EdgeLimits(Options):
    """Bounds of a chunk edge, for each request, at either end of it."""

    window: PositiveInt = Field(64, description="Chunks of one request that wait at each end of a chunk edge.")
    window_bytes: ByteSize = Field(ByteSize(MIB), gt=0, description="Bytes of one request that wait there, likewise.")
    stall: PositiveFloat | None = Field(
        None, description="Seconds for which a chunk edge may be silent before the request fails; none: for ever."
    )


class Clocks(Options):
    """The four clocks of each request (OR-17), in seconds; ``None`` never fires. The error names the stage."""

    queued: PositiveFloat | None = Field(None, description="From add_request until the first stage has taken it.")
    first_output: PositiveFloat | None = Field(None, description="From then until the client's first output is there.")
    between: PositiveFloat | None = Field(
        None, description="Between two outputs; time in which outputs wait for the client does not count."
    )
    total: PositiveFloat | None = Field(None, description="From add_request until the end.")
