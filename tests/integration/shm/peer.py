"""A process that uses the stores as it is told through a pipe."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from stagewire import Holder, Lease
from stagewire.testing import StubContext
from stagewire_shm import ShmKVOptions, ShmLeaseOptions, make_kv, make_lease


class Peer:
    """A child process with both backends open; `ask` runs one of `Work`'s methods in it."""

    def __init__(self, directory: Path, **options: Any) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, far = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(far, directory, options), daemon=True)
        self._process.start()
        far.close()
        self.ask("ready")

    def ask(self, name: str, *arguments: Any) -> Any:
        """Return the method's result, or raise its exception."""
        self.tell(name, *arguments)
        assert self._pipe.poll(30), f"{name} has no result"
        result = self._pipe.recv()
        if isinstance(result, Exception):
            raise result
        return result

    def tell(self, name: str, *arguments: Any) -> None:
        """Begin the method; its result is left in the pipe."""
        self._pipe.send((name, arguments))

    def kill(self) -> None:
        """End the process as it stands."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()
        self._process.close()
        self._pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()


class Work:
    """What a peer can be asked."""

    def __init__(self, directory: Path, options: dict[str, Any]) -> None:
        context = StubContext()
        self.kv = make_kv(ShmKVOptions(directory=directory, **options), context)
        self.lease = make_lease(ShmLeaseOptions(directory=directory), context)
        self.holders: dict[str, Holder] = {}

    async def ready(self) -> None:
        await self.kv.open()
        await self.lease.open()

    async def put(self, key: str, value: bytes, lease: Lease | None) -> None:
        await self.kv.put(key, value, lease)

    async def put_for_ever(self, key: str, size: int, ttl: float) -> None:
        """Put, hold, replace and delete until the process is killed."""
        number = 0
        while True:
            lease = await self.lease.grant(ttl)
            value = bytes([number % 256]) * size
            await self.kv.put(key, value, lease)
            holder = await self.kv.get(key)
            await self.kv.put(key, value[: size // 2], lease)
            if number % 3 == 0:
                await self.kv.delete(key)
            del holder
            number += 1

    async def read(self, key: str) -> bytes | None:
        holder = await self.kv.get(key)
        if holder is None:
            return None
        with holder:
            return bytes(holder.data)

    async def hold(self, name: str, key: str) -> bool:
        holder = await self.kv.get(key)
        if holder is not None:
            self.holders[name] = holder
        return holder is not None

    async def held(self, name: str) -> bytes:
        return bytes(self.holders[name].data)

    async def let_go(self, name: str) -> None:
        self.holders.pop(name).release()

    async def delete(self, key: str) -> bool:
        return await self.kv.delete(key)

    async def keys(self) -> list[str]:
        return await self.kv.keys()

    async def grant(self, ttl: float) -> Lease:
        return await self.lease.grant(ttl)

    async def keepalive(self, lease: Lease) -> Lease:
        return await self.lease.keepalive(lease)

    async def attach(self, lease: Lease, key: str) -> None:
        await self.lease.attach(lease, key)

    async def revoke(self, lease: Lease) -> None:
        await self.lease.revoke(lease)


def _serve(pipe: Connection, directory: Path, options: dict[str, Any]) -> None:
    asyncio.run(_answer(pipe, Work(directory, options)))


async def _answer(pipe: Connection, work: Work) -> None:
    while True:
        name, arguments = await asyncio.to_thread(pipe.recv)
        try:
            pipe.send(await getattr(work, name)(*arguments))
        except Exception as error:
            pipe.send(error)
