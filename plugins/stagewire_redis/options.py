"""What ``kv: {use: redis}`` and ``lease: {use: redis}`` take."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qs, urlsplit

from pydantic import ByteSize, ConfigDict, Field, SecretStr, field_validator

from stagewire import Options

SCHEMES = ("redis", "rediss", "unix")
QUERY = ("db", "client_name")
TLS_QUERY = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")
"""What a URL may set after its ``?``: any, and one with TLS."""


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
    _check_database(parts)
    allowed = QUERY + TLS_QUERY if parts.scheme == "rediss" else QUERY
    unknown = parse_qs(parts.query, keep_blank_values=True).keys() - set(allowed)
    if unknown:
        raise ValueError(f"has settings that are not supported ({len(unknown)}): only {', '.join(allowed)} are")


def _check_database(parts: SplitResult) -> None:
    named = parse_qs(parts.query).get("db", [])
    if parts.scheme != "unix":
        named = [*named, parts.path.removeprefix("/") or "0"]
    if not all(name.isdecimal() for name in named):
        raise ValueError("names no database: it is a number, as in redis://host:6379/0 or unix:///path?db=0")


class RedisKVOptions(RedisOptions):
    """Options of the KV backend."""

    reference_threshold: ByteSize = Field(
        ByteSize(256 * 1024),
        gt=0,
        description="From this size on a reference to the store is sent instead of the payload.",
    )
    part_bytes: ByteSize = Field(
        ByteSize(16 * 1024 * 1024),
        ge=1024 * 1024,
        le=64 * 1024 * 1024,
        description="Larger values are stored in parts of this size: one large command blocks the server for all.",
    )


class RedisLeaseOptions(RedisOptions):
    """Options of the lease backend."""
