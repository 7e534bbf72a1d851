"""What ``kv: {use: memory}`` and ``lease: {use: memory}`` take."""

from __future__ import annotations

from pydantic import ByteSize, Field

from stagewire import Options

KIB, MIB = 1024, 1024 * 1024


class MemoryKVOptions(Options):
    """Bounds of the in-memory store."""

    max_bytes: ByteSize = Field(
        ByteSize(512 * MIB),
        gt=0,
        description="Bytes that may be stored. A deleted value that a holder still keeps is not counted.",
    )
    reference_threshold: ByteSize = Field(
        ByteSize(256 * KIB),
        gt=0,
        description="From this size on a reference to the store is sent instead of the payload.",
    )


class MemoryLeaseOptions(Options):
    """The in-memory leases have nothing to set."""
