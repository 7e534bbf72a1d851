"""An agent and a controller in one process, in virtual time, with a store and mailboxes that go wrong on request."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stagewire import Buffer, Holder, KVError, Lease, LoggingOptions, ViewHolder, make_logger
from stagewire.testing import FaultPlan, FaultyBatchTransport, StubContext, no_task_leaks, run_virtual
from stagewire_local.options import LocalOptions
from stagewire_local.transport import LocalTransport
from stagewire_memory.kv import MemoryKV
from stagewire_memory.options import MemoryKVOptions, MemoryLeaseOptions
from stagewire_memory.plugin import make_kv, make_lease
from stagewire_writes import ExportOptions, SessionOptions, WriteAgent, WriteController, WritesOptions
from stagewire_writes.remote import Remote

SMALL: dict[str, Any] = {
    "submit": 32,
    "frame": 8,
    "batch": 32,
    "window": 128,
    "agent_queue": 32,
    "small_put": 16,
}
"""The bounds of WS-1 in bytes instead of MiB, so that a test has many frames."""


async def inline(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Run what blocks here; lets others run before it, as a thread would."""
    await asyncio.sleep(0)
    return function(*args, **kwargs)


class TroubledKV:
    """A store whose next operations fail, hang, lose or change what they were asked for."""

    def __init__(self, inner: MemoryKV) -> None:
        self.inner = inner
        self.fail_puts = self.fail_gets = self.lose_gets = self.flip_gets = 0
        self.hang_puts = False
        self.puts: list[str] = []
        self.on_get: Callable[[str], None] = lambda _key: None

    @property
    def reference_threshold(self) -> int:
        return self.inner.reference_threshold

    async def open(self) -> None:
        await self.inner.open()

    async def put(self, key: str, value: Buffer, lease: Lease | None = None) -> None:
        self.puts.append(key)
        if self.hang_puts:
            await asyncio.sleep(10_000)
        if self.fail_puts and key.startswith("write-"):
            self.fail_puts -= 1
            raise KVError("the store is out of reach")
        await self.inner.put(key, value, lease)

    async def get(self, key: str) -> Holder | None:
        self.on_get(key)
        if not key.startswith("write-"):
            return await self.inner.get(key)
        if self.fail_gets:
            self.fail_gets -= 1
            raise KVError("the store is out of reach")
        if self.lose_gets:
            self.lose_gets -= 1
            return None
        holder = await self.inner.get(key)
        if holder is not None and self.flip_gets:
            self.flip_gets -= 1
            changed = bytearray(holder.data)
            changed[0] ^= 1
            return ViewHolder(bytes(changed))
        return holder

    async def delete(self, key: str) -> bool:
        return await self.inner.delete(key)

    async def exists(self, key: str) -> bool:
        return await self.inner.exists(key)

    async def keys(self, prefix: str = "") -> list[str]:
        return await self.inner.keys(prefix)

    async def close(self) -> None:
        await self.inner.close()


class World:
    """One export, its agent and a controller."""

    def __init__(self, root: Path, *, export: dict[str, Any] | None = None, **session: Any) -> None:
        loop = asyncio.get_running_loop()
        self.root = root
        self.text = io.StringIO()
        self.log = make_logger(LoggingOptions(level="debug", format="json"), pipeline="test", stream=self.text)
        context = StubContext(clock=loop.time, log=self.log)
        self.kv = TroubledKV(make_kv(MemoryKVOptions(), context))
        self.leases = make_lease(MemoryLeaseOptions(), context)
        self.transport = LocalTransport(LocalOptions(), clock=loop.time, log=self.log)
        self.plan = FaultPlan()
        self.batches = FaultyBatchTransport(self.transport.batches(), self.plan)
        options = {"root": root, **(export or {})}
        self.options = WritesOptions(
            exports={"data": ExportOptions(**options)}, session=SessionOptions(**{**SMALL, **session})
        )
        self.agent = self.new_agent()
        self.controller = self.new_controller()
        self.remote = Remote(self.batches)

    def new_agent(self, **options: Any) -> WriteAgent:
        return WriteAgent(
            "data",
            self.options.exports["data"],
            **{"session": self.options.session, "node": "a", "offload": inline, **self._common(), **options},
        )

    def new_controller(self, **options: Any) -> WriteController:
        return WriteController(self.options, **{**self._common(), "offload": inline, **options})

    def _common(self) -> dict[str, Any]:
        return {
            "batches": self.batches,
            "kv": self.kv,
            "leases": self.leases,
            "clock": asyncio.get_running_loop().time,
            "log": self.log,
        }

    async def start(self) -> None:
        await self.transport.open()
        await self.kv.open()
        await self.leases.open()
        await self.agent.start()

    async def stop(self) -> None:
        self.plan.clear()
        self.plan.release()
        await self.controller.close()
        await self.agent.close()
        await self.transport.close()

    async def put(self, path: str, data: bytes, step: int = 32) -> Any:
        """Write a file through a session."""
        session = await self.controller.open_session("data", path)
        for at in range(0, len(data), step):
            await session.submit(at, data[at : at + step])
        return await session.finalize()

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def files(self) -> list[str]:
        """Every file of the tree, unfinished ones too."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file())

    async def temporary_keys(self) -> list[str]:
        return await self.kv.keys("write-")

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.text.getvalue().splitlines()]
        return [line for line in lines if line["event"] == name]


@asynccontextmanager
async def world_of(root: Path, **options: Any) -> AsyncIterator[World]:
    world = World(root, **options)
    await world.start()
    try:
        yield world
    finally:
        await world.stop()


Story = Callable[[World], Coroutine[Any, Any, None]]
Play = Callable[..., None]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run a story in virtual time; afterwards no task, temporary key or unfinished file may be left."""

    def run(story: Story, *, leftovers: bool = False, **options: Any) -> None:
        async def main() -> None:
            async with no_task_leaks(), world_of(tmp_path / "export", **options) as world:
                await story(world)
            if not leftovers:
                assert not [name for name in world.files() if name.startswith(".stagewire")]
                world.kv.inner._closed = False
                assert await world.temporary_keys() == []

        run_virtual(main())

    return run
