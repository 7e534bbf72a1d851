"""What ``kv: {use: redis}`` and ``lease: {use: redis}`` take."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from pydantic import ByteSize, ConfigDict, Field, SecretStr, field_validator

from stagewire import Options

SCHEMES = ("redis", "rediss", "unix")
QUERY = ("db", "client_name")
"""What a URL may set after its ``?``, beside ``ssl_…``."""


class RedisOptions(Options):
    """How to reach the server. A lease only holds keys on the server that it is on, so both name the same one."""

    model_config = ConfigDict(hide_input_in_errors=True)

    url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="redis://user:password@host:port/db, rediss:// for TLS, unix:///path/to/socket?db=0. A secret.",
    )
    prefix: str = Field("stagewire", pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="First part of every key.")
    connections: int = Field(16, ge=1, description="Connections at most; a further operation waits for one.")
    timeout: float = Field(5.0, gt=0, description="Seconds that one command, and the wait for a connection, may take.")

    allow_eviction: bool = Field(
        default=False,
        description="Use a server whose maxmemory-policy drops values when it is full; a dropped payload is lost.",
    )

    @field_validator("url")
    @classmethod
    def _is_redis(cls, url: SecretStr) -> SecretStr:
        if url.get_secret_value().partition("://")[0] not in SCHEMES:
            raise ValueError("must begin with redis://, rediss:// or unix://")
        _check_parts(url.get_secret_value())
        return url


def _check_parts(url: str) -> None:
    """Refuse what cannot be read; the messages of urllib are not passed on, because they quote parts of passwords."""
    try:
        parts = urlsplit(url)
        _ = parts.port, parts.username, parts.password
    except ValueError:
        raise ValueError("cannot be read: is the port a number? Write /, :, @, #, ? of a password as %XX") from None
    if "@" in parts.path + parts.query + parts.fragment or (parts.fragment and parts.scheme != "unix"):
        raise ValueError("cannot be read: write /, :, @, #, ? of a password as %XX")
    if parts.scheme != "unix" and not parts.path.removeprefix("/").isdecimal() and parts.path not in ("", "/"):
        raise ValueError("names no database: the path is a number, as in redis://host:6379/0")
    unknown = [name for name in parse_qs(parts.query) if name not in QUERY and not name.startswith("ssl_")]
    if unknown:
        raise ValueError(f"has settings that are not supported ({len(unknown)}): only {', '.join(QUERY)} and ssl_… are")


class RedisKVOptions(RedisOptions):
    """Options of the KV backend."""

    reference_threshold: ByteSize = Field(
        ByteSize(256 * 1024),
        gt=0,
        description="From this size on a reference to the store is sent instead of the payload.",
    )
    part_bytes: ByteSize = Field(
        ByteSize(8 * 1024 * 1024),
        ge=1024 * 1024,
        le=64 * 1024 * 1024,
        description="Larger values are stored in parts of this size: one large command blocks the server for all.",
    )


class RedisLeaseOptions(RedisOptions):
    """Options of the lease backend."""
