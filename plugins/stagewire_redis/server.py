"""One connection pool to one Redis: operations bounded in time and number, safe under a cancel, their errors mapped."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import redis.asyncio as redis_asyncio
from redis import exceptions as redis_faults
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from stagewire import Closed, KVError
from stagewire_redis.faults import explain, name_server
from stagewire_redis.options import RedisOptions
from stagewire_redis.scripts import PROBE
from stagewire_redis.slices import slicing

T = TypeVar("T")
Command = Sequence[Any]

OLDEST = (6, 2)
RETRIES = 3
"""How often a command is sent again after its connection was lost. Every script may run twice."""

READ_BYTES = 1024 * 1024
"""Bytes read at once: with redis-py's 64 KiB a large value costs three times the CPU."""


class Server:
    """Runs commands and scripts. Belongs to one event loop.

    The whole of an operation is under one deadline of ours, and redis-py has none: its ``wait_for`` on each write loses
    a cancel that comes at the wrong moment. It drops the connection of a command that was cancelled, so that the late
    reply is never read as another one's. A semaphore bounds the connections: redis-py's blocking pool wakes one waiter
    with ``Condition.notify``, which is lost when that waiter is cancelled.
    """

    def __init__(self, options: RedisOptions) -> None:
        self.prefix = f"{options.prefix}:"
        self._options = options
        self._client: redis_asyncio.Redis | None = None
        self._place = "Redis"
        self._secret: str | None = None
        self._slots = asyncio.Semaphore(options.connections)
        self._closer: asyncio.Task[None] | None = None

    @property
    def place(self) -> str:
        """The server, named without its password."""
        return self._place

    async def open(self) -> None:
        """Connect and refuse what cannot work. Raises `KVError` with the cause and the remedy. Idempotent."""
        if self._closer is not None:
            raise Closed("the backend was closed")
        if self._client is not None:
            return
        client = self._client = self._connect()
        try:
            self._refuse(await self._operate(lambda connected: connected.execute_command("HELLO")))
            await self._refuse_eviction()
            await self.run(PROBE)
        except BaseException:
            self._client = None
            await asyncio.shield(client.aclose())
            raise

    def _connect(self) -> redis_asyncio.Redis:
        pool = redis_asyncio.ConnectionPool.from_url(
            self._options.url.get_secret_value(),
            max_connections=self._options.connections,
            socket_timeout=None,
            socket_connect_timeout=None,
            socket_read_size=READ_BYTES,
            retry=Retry(ExponentialBackoff(cap=0.5, base=0.02), RETRIES),
            protocol=3,
        )
        pool.connection_class = slicing(pool.connection_class)
        self._place, self._secret = name_server(pool.connection_kwargs), pool.connection_kwargs.get("password")
        return redis_asyncio.Redis.from_pool(pool)

    def _refuse(self, hello: dict[Any, Any]) -> None:
        """Refuse a server that cannot hold leases. HELLO, unlike INFO, is open to every user."""
        said = {_text(name): _text(value) for name, value in hello.items()}
        mode, version = said.get("mode", "standalone"), said.get("version", "0")
        if mode == "cluster":
            raise KVError(
                f"{self._place}: it is part of a cluster, which is not supported: a lease and the keys tied to it"
                " must be on one server; name a single server (with replicas, if you like)"
            )
        if mode == "sentinel":
            raise KVError(f"{self._place}: it is a sentinel, which stores nothing: name the primary in the url")
        if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST:
            raise KVError(f"{self._place}: its version {version} is too old: 6.2 or later is needed")

    async def _refuse_eviction(self) -> None:
        """Refuse a server that drops values when it is full, where the user may look and did not allow it."""
        if self._options.allow_eviction:
            return
        try:
            memory = await self._operate(lambda client: client.info("memory"), raw=(redis_faults.NoPermissionError,))
        except redis_faults.NoPermissionError:
            return
        policy = memory.get("maxmemory_policy", "noeviction")
        if int(memory.get("maxmemory", 0)) and policy != "noeviction":
            raise KVError(
                f"{self._place}: with maxmemory-policy {policy} it silently drops values and leases when it is full:"
                " set it to noeviction, or set the option allow_eviction and risk it"
            )

    async def run(self, script: str, *arguments: Any, after: Sequence[Command] = ()) -> Any:
        """Run a script with the prefix and these arguments, in one round trip after some commands.

        It may run twice, the commands too, should the reply be lost.
        """

        async def evaluate(client: Any) -> Any:
            try:
                replies = await _send(client, *after, ("EVALSHA", _sha(script), 0, self.prefix, *arguments))
            except redis_faults.NoScriptError:
                replies = await _send(client, *after, ("EVAL", script, 0, self.prefix, *arguments))
            return replies[-1]

        return await self._operate(evaluate)

    async def command(self, *command: Any) -> Any:
        """Run one command; returns its reply."""
        return (await self.commands(command))[0]

    async def commands(self, *commands: Command) -> list[Any]:
        """Run several commands in one round trip, with nothing of others in between; returns their replies."""
        return await self._operate(lambda client: _send(client, *commands, atomic=True))

    async def close(self) -> None:
        """Let what is under way end, then close every connection. Idempotent; cancelled, it goes on."""
        if self._closer is None:
            self._closer = asyncio.create_task(self._shut(), name="redis-close")
        await asyncio.shield(self._closer)

    async def _shut(self) -> None:
        for _ in range(self._options.connections):
            await self._slots.acquire()
        client, self._client = self._client, None
        for _ in range(self._options.connections):
            self._slots.release()
        if client is not None:
            await client.aclose()

    async def _operate(self, work: Callable[[Any], Awaitable[T]], *, raw: tuple[type[Exception], ...] = ()) -> T:
        """Do the work on a connection, within the timeout; errors of the kinds ``raw`` come through as they are."""
        self._connected()
        await self._take_slot()
        try:
            async with asyncio.timeout(self._options.timeout):
                return await work(self._connected())
        except raw:
            raise
        except TimeoutError:
            message = "is it overloaded, blocked or cut off, or does only one end speak TLS? See the option timeout"
            raise KVError(f"{self._place}: no answer within {self._options.timeout:g} s: {message}") from None
        except (redis_faults.RedisError, OSError) as error:
            raise explain(self._place, error, self._secret) from None
        finally:
            self._slots.release()

    async def _take_slot(self) -> None:
        try:
            async with asyncio.timeout(self._options.timeout):
                await self._slots.acquire()
        except TimeoutError:
            count, seconds = self._options.connections, self._options.timeout
            message = f"all {count} connections were in use for {seconds:g} s: raise the option connections"
            raise KVError(f"{self._place}: {message}") from None

    def _connected(self) -> redis_asyncio.Redis:
        if self._client is None or self._closer is not None:
            raise Closed("the backend is not open (or was closed)")
        return self._client


async def probe_server(options: RedisOptions) -> str:
    """Connect and write once; returns what answered. Raises `KVError`."""
    server = Server(options)
    try:
        await server.open()
        return f"{server.place} answers and takes writes"
    finally:
        await server.close()


async def _send(client: Any, *commands: Command, atomic: bool = False) -> list[Any]:
    """Send commands in one round trip; returns their replies or raises the first error among them."""
    if len(commands) == 1:
        return [await client.execute_command(*commands[0])]
    async with client.pipeline(transaction=atomic) as pipeline:
        for command in commands:
            pipeline.execute_command(*command)
        return list(await pipeline.execute())


@cache
def _sha(script: str) -> str:
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()  # the name that Redis gives to a script


def milliseconds(seconds: float) -> int:
    """Return seconds as Redis takes them; at least one millisecond, because 0 deletes."""
    return max(1, round(seconds * 1000))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
