"""What ``kv: {use: redis}`` and ``lease: {use: redis}`` take."""

from __future__ import annotations

from pydantic import ByteSize, Field, SecretStr, field_validator

from stagewire import Options

SCHEMES = ("redis", "rediss", "unix")


class RedisOptions(Options):
    """How to reach the server. A lease only holds keys on the server that it is on, so both name the same one."""

    url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="redis://user:password@host:port/db, rediss:// for TLS, unix:///path/to/socket?db=0. A secret.",
    )
    prefix: str = Field("stagewire", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="First part of every key.")
    connections: int = Field(16, ge=1, description="Connections at most; a further operation waits for one.")
    timeout: float = Field(5.0, gt=0, description="Seconds that one operation may take.")

    @field_validator("url")
    @classmethod
    def _is_redis(cls, url: SecretStr) -> SecretStr:
        if url.get_secret_value().partition("://")[0] not in SCHEMES:
            raise ValueError("must begin with redis://, rediss:// or unix://")
        return url


class RedisKVOptions(RedisOptions):
    """Options of the KV backend."""

    reference_threshold: ByteSize = Field(
        ByteSize(256 * 1024),
        gt=0,
        description="From this size on a reference to the store is sent instead of the payload.",
    )
    part_bytes: ByteSize = Field(
        ByteSize(8 * 1024 * 1024),
        ge=1,
        le=64 * 1024 * 1024,
        description="Larger values are stored in parts of this size: one large command blocks the server for all.",
    )


class RedisLeaseOptions(RedisOptions):
    """Options of the lease backend."""
