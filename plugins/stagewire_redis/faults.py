"""What redis-py raises, said as a person needs it: where, why, and what to do."""

from __future__ import annotations

from typing import Any

from redis import exceptions as faults

from stagewire import KVError

_READ_ONLY = "it is a read-only replica: name the primary in the url"
_FULL = "it is full (maxmemory): raise the limit, or see why values are not deleted"
_FORBIDDEN = "the user may not do this: give it the prefix's keys and the commands for scripts"

_REMEDIES: tuple[tuple[type[Exception], str, str], ...] = (
    (faults.ReadOnlyError, "", _READ_ONLY),
    (faults.ResponseError, "READONLY", _READ_ONLY),
    (faults.OutOfMemoryError, "", _FULL),
    (faults.ResponseError, "OOM ", _FULL),
    (faults.NoPermissionError, "", _FORBIDDEN),
    (faults.ResponseError, "user executing the script", _FORBIDDEN),
    (faults.ResponseError, "MISCONF", "it refuses writes because it cannot save to disk: see its log and its disk"),
    (faults.ResponseError, "NOREPLICAS", "it refuses writes: too few replicas are connected for min-replicas-to-write"),
    (
        faults.ConnectionError,
        "number of clients",
        "it takes no more clients: raise its maxclients, or lower connections",
    ),
    (faults.AuthenticationError, "", "wrong or missing user name or password: correct the url"),
    (faults.BusyLoadingError, "", "it is still loading its data: try again"),
    (
        faults.ConnectionError,
        "SSL",
        "TLS failed: write redis:// if it speaks none; else see its certificate, ssl_ca_certs",
    ),
    (faults.ConnectionError, "closed by server", "it closed the connection: does it expect TLS (write rediss://)?"),
    (faults.ConnectionError, "while reading", "the connection broke: is it up, does it expect TLS (write rediss://)?"),
    (faults.ConnectionError, "", "it cannot be reached: start it, or correct the url"),
)
"""Kind of error, what is in its text, and what to do. A script's error may carry its code as text."""


def explain(place: str, error: Exception, secret: str | None) -> KVError:
    """Make a `KVError` that names the server, the remedy and the cause, without the password."""
    text = str(error)
    if secret:
        text = text.replace(secret, "***")
    remedy = _remedy(error, text)
    return KVError(f"{place}: {remedy} ({text})" if remedy else f"{place}: {text}")


def _remedy(error: Exception, text: str) -> str | None:
    return next((remedy for kind, mark, remedy in _REMEDIES if isinstance(error, kind) and mark in text), None)


def name_server(connection: dict[str, Any]) -> str:
    """Name the server without its password."""
    if "path" in connection:
        return f"Redis at {connection['path']}"
    host, port = connection.get("host", "localhost"), connection.get("port", 6379)
    return f"Redis at {host}:{port}, db {connection.get('db', 0)}"
