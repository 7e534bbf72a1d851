"""What ``kv: {use: shm}`` and ``lease: {use: shm}`` take."""

from __future__ import annotations

from pathlib import Path

from pydantic import ByteSize, Field

from stagewire import Options

KIB, MIB = 1024, 1024 * 1024


class ShmOptions(Options):
    """Where the store is. Processes that name the same one share it; a lease holds values of its own store only."""

    name: str = Field("default", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="The store's name.")
    directory: Path = Field(
        Path("/dev/shm"),  # noqa: S108 — the store makes a private directory in it, and checks whose it is
        description="Where the store's directory is made; a file system in memory.",
    )
    timeout: float = Field(5.0, gt=0, description="Seconds to wait at most for other processes' work on the index.")


class ShmKVOptions(ShmOptions):
    """Options of the KV backend."""

    max_bytes: ByteSize = Field(
        ByteSize(512 * MIB),
        gt=0,
        description="Bytes of segments at most: values, what readers still hold, and the pool. Equal in all processes.",
    )
    reference_threshold: ByteSize = Field(
        ByteSize(64 * KIB),
        gt=0,
        description="From this size on a reference to the store is sent instead of the payload.",
    )
    idle: float = Field(60.0, gt=0, description="Seconds after which an unused segment of the pool is given back.")
    sweep: float = Field(5.0, gt=0, description="Seconds between two looks for what dead processes left.")
    threads: int = Field(4, ge=1, le=64, description="Threads that copy; operations under way at once.")


class ShmLeaseOptions(ShmOptions):
    """Options of the lease backend."""
