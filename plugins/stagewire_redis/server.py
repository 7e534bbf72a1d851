"""One connection pool to one Redis, with its errors mapped and its commands made safe under a cancel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis.asyncio as redis_asyncio
from redis import exceptions as faults
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from stagewire import Closed, KVError
from stagewire_redis.options import RedisOptions

OLDEST = (6, 2)

_REMEDIES: tuple[tuple[type[Exception], str], ...] = (
    (faults.AuthenticationError, "wrong user name or password: correct the url"),
    (faults.OutOfMemoryError, "it is full (maxmemory): raise the limit, or see why values are not deleted"),
    (faults.ReadOnlyError, "it is a read-only replica: name the primary in the url"),
    (faults.NoPermissionError, "the user may not do this: give it the prefix's keys and the commands for scripts"),
    (faults.BusyLoadingError, "it is still loading its data: try again"),
    (faults.MaxConnectionsError, "all connections are in use: raise the option connections"),
    (faults.TimeoutError, "no answer in time: is it overloaded or blocked, is TLS expected? See the option timeout"),
    (faults.ConnectionError, "it cannot be reached: start it, or correct the url"),
)


class Server:
    """Runs commands and scripts. Belongs to one event loop.

    redis-py drops the connection of a cancelled command, so its late reply is never read as another one's.
    """

    def __init__(self, options: RedisOptions) -> None:
        self.prefix = f"{options.prefix}:"
        self._options = options
        self._client: redis_asyncio.Redis | None = None
        self._place = "Redis"
        self._scripts: dict[str, Any] = {}

    async def open(self) -> None:
        """Connect and refuse what cannot work. Raises `KVError` with the cause and the remedy. Idempotent."""
        if self._client is not None:
            return
        pool = redis_asyncio.BlockingConnectionPool.from_url(
            self._options.url.get_secret_value(),
            max_connections=self._options.connections,
            timeout=self._options.timeout,
            socket_timeout=self._options.timeout,
            socket_connect_timeout=self._options.timeout,
            retry=Retry(ExponentialBackoff(cap=0.5, base=0.02), 3),
            protocol=3,
        )
        client = redis_asyncio.Redis.from_pool(pool)
        self._place = _name(pool.connection_kwargs)
        try:
            info = await client.info("server")
            cluster = await client.info("cluster")
        except faults.RedisError as error:
            await client.aclose()
            raise self._map(error) from error
        try:
            self._refuse(info, cluster)
        except KVError:
            await client.aclose()
            raise
        self._client = client

    def _refuse(self, info: dict[str, Any], cluster: dict[str, Any]) -> None:
        if int(cluster.get("cluster_enabled", 0)):
            raise KVError(
                f"{self._place}: it is part of a cluster, which is not supported: a lease and the keys tied to it"
                " must be on one server; name a single server (with replicas, if you like)"
            )
        version = str(info.get("redis_version", "0"))
        if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
            raise KVError(f"{self._place}: its version {version} is too old: 6.2 or later is needed")

    async def run(self, script: str, *arguments: Any) -> Any:
        """Run a script with the prefix and these arguments."""
        client = self._connected()
        registered = self._scripts.get(script)
        if registered is None:
            registered = self._scripts[script] = client.register_script(script)
        try:
            return await registered(keys=(), args=(self.prefix, *arguments))
        except faults.RedisError as error:
            raise self._map(error) from error

    async def commands(self, *commands: Sequence[Any]) -> list[Any]:
        """Run several commands in one round trip; returns their replies."""
        try:
            async with self._connected().pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return list(await pipeline.execute())
        except faults.RedisError as error:
            raise self._map(error) from error

    async def close(self) -> None:
        """Close every connection. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _connected(self) -> redis_asyncio.Redis:
        if self._client is None:
            raise Closed("the backend is not open (or was closed)")
        return self._client

    def _map(self, error: faults.RedisError) -> KVError:
        for kind, remedy in _REMEDIES:
            if isinstance(error, kind):
                return KVError(f"{self._place}: {remedy} ({error})")
        return KVError(f"{self._place}: {error}")


def _name(connection: dict[str, Any]) -> str:
    """Name the server without its password."""
    if "path" in connection:
        return f"Redis at {connection['path']}"
    host, port = connection.get("host", "localhost"), connection.get("port", 6379)
    return f"Redis at {host}:{port}, db {connection.get('db', 0)}"
