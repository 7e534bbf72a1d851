"""Payloads of one put that are stored several at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.claims.conftest import LARGE, LINK, World, eventually_got, opened

from stagewire import ChunkKey, ChunkMessage, Permanent, Retryable
from stagewire.claims import outgoing
from stagewire.errors import KVError


def chunk(payload: Any = LARGE) -> ChunkMessage:
    return {"data": payload, "finished": False}


class SlowStore:
    """Lets each put go on when told, counts them, and fails the payloads that hold a mark."""

    def __init__(self, world: World) -> None:
        self.gate = asyncio.Event()
        self.now = self.most = self.begun = 0
        self._changed = asyncio.Event()
        self._put = world.kv.put
        world.kv.put = self.put  # type: ignore[method-assign]

    async def put(self, key: str, value: Any, lease: Any = None) -> None:
        self.begun += 1
        self._changed.set()
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
            if b"broken" in bytes(value):
                raise KVError("full")
            await self._put(key, value, lease)
        finally:
            self.now -= 1

    async def until_begun(self, count: int) -> None:
        async with asyncio.timeout(5):
            while self.begun < count:
                self._changed.clear()
                await self._changed.wait()


def test_tr5_few_payloads_of_a_put_are_stored_at_once_and_arrive_in_order() -> None:
    async def main() -> None:
        async with opened() as world:
            store = SlowStore(world)
            chunks: Any = world.transport.chunks(LINK)
            items = [(ChunkKey("r", "a", number), chunk(LARGE + bytes([number]))) for number in range(12)]
            put = asyncio.create_task(asyncio.to_thread(chunks.put_many, items))
            await store.until_begun(outgoing.CHECK_INS)
            store.gate.set()
            assert await put == [None] * 12
            assert store.most == outgoing.CHECK_INS
            for key, message in items:
                assert (await eventually_got(chunks, key))["data"] == message["data"]

    asyncio.run(main())


def test_tr5_payloads_that_are_stored_at_once_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing, "CHECK_IN_BYTES", 2 * len(LARGE) + 100)

    async def main() -> None:
        async with opened() as world:
            store = SlowStore(world)
            chunks: Any = world.transport.chunks(LINK)
            items = [(ChunkKey("r", "a", number), chunk(LARGE * (1 + 9 * (number == 3)))) for number in range(6)]
            put = asyncio.create_task(asyncio.to_thread(chunks.put_many, items))
            await store.until_begun(2)
            store.gate.set()
            assert await put == [None] * 6, "one that is larger than the bound is stored alone"
            assert store.most == 2

    asyncio.run(main())


def test_tr10_after_a_payload_that_failed_the_later_chunks_of_its_request_fail_too() -> None:
    async def main() -> None:
        async with opened() as world:
            store = SlowStore(world)
            store.gate.set()
            chunks: Any = world.transport.chunks(LINK)
            later, other = chunk(), chunk()
            broken = (ChunkKey("r", "a", 1), chunk(LARGE + b"broken"))
            items = [
                (ChunkKey("r", "a", 0), chunk()),
                broken,
                (ChunkKey("r", "a", 2), later),
                (ChunkKey("s", "a", 0), other),
            ]
            results = await asyncio.to_thread(chunks.put_many, items)
            assert [type(result) for result in results] == [type(None), Retryable, Retryable, type(None)]
            assert "an earlier one of its request was not" in str(results[2])
            begun = store.begun
            again = [(ChunkKey("r", "a", 1), chunk(LARGE)), (ChunkKey("r", "a", 2), later)]
            assert await asyncio.to_thread(chunks.put_many, again) == [None, None]
            assert store.begun == begun + 1, "the payload of the later one is there already"

    asyncio.run(main())


def test_tr10_after_a_payload_that_cannot_be_sent_nothing_of_its_request_stays() -> None:
    async def main() -> None:
        async with opened() as world:
            chunks: Any = world.transport.chunks(LINK)
            items = [(ChunkKey("r", "a", 0), chunk([LARGE, object()])), (ChunkKey("r", "a", 1), chunk())]
            results = await asyncio.to_thread(chunks.put_many, items)
            assert [type(result) for result in results] == [Permanent, Permanent]
            await asyncio.sleep(0.01)
            assert await world.kv.keys() == []
            assert chunks._sent == {}

    asyncio.run(main())


def test_tk1_a_cleanup_stops_the_payloads_that_are_being_stored() -> None:
    async def main() -> None:
        async with opened() as world:
            store = SlowStore(world)
            chunks: Any = world.transport.chunks(LINK)
            items = [(ChunkKey(request, "a", 0), chunk()) for request in ("r", "s")]
            put = asyncio.create_task(asyncio.to_thread(chunks.put_many, items))
            await store.until_begun(2)
            await asyncio.to_thread(chunks.cleanup, "r")
            store.gate.set()
            results = await put
            assert isinstance(results[0], Permanent)
            assert "cleaned up" in str(results[0])
            assert results[1] is None
            await asyncio.sleep(0.01)
            assert len(await world.kv.keys()) == 1

    asyncio.run(main())


def test_tk3_a_payload_that_is_not_stored_in_time_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewire.claims.chunks.STORE_TIMEOUT", 0.02)

    async def main() -> None:
        async with opened() as world:
            store = SlowStore(world)
            chunks: Any = world.transport.chunks(LINK)
            (result,) = await asyncio.to_thread(chunks.put_many, [(ChunkKey("r", "a", 0), chunk())])
            assert isinstance(result, Retryable)
            assert "not stored within" in str(result)
            store.gate.set()
            await asyncio.sleep(0.01)
            assert await world.kv.keys() == []
            assert chunks._sent == {}

    asyncio.run(main())
