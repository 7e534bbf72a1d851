"""Claim-check over the in-memory backends and the in-process transport."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.unit.claims.conftest import LARGE, LINK, eventually_got, opened

from stagewire import INLINE, ChunkExpired, ChunkKey, ChunkMessage, KVError, Message, Permanent, Retryable
from stagewire.claims.chunks import FETCHES


def test_tr10_a_large_chunk_travels_as_a_claim_and_the_receiver_cannot_tell() -> None:
    async def main() -> None:
        async with opened() as world:
            chunks = world.transport.chunks(LINK)
            message: ChunkMessage = {"data": {"audio": LARGE, "n": 1}, "finished": True}
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), message)
            (key,) = await world.kv.keys()
            assert key.startswith("claim-")
            assert await eventually_got(chunks, ChunkKey("r", "a", 0)) == message
            assert await world.kv.keys() == []

    asyncio.run(main())


def test_tr10_a_small_chunk_goes_inline() -> None:
    async def main() -> None:
        async with opened() as world:
            chunks = world.transport.chunks(LINK)
            message: ChunkMessage = {"data": b"small", "finished": False}
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), message)
            assert await world.kv.keys() == []
            assert await asyncio.to_thread(chunks.get, ChunkKey("r", "a", 0)) == message

    asyncio.run(main())


def test_tr10_a_get_does_not_wait_for_the_payload() -> None:
    async def main() -> None:
        async with opened() as world:
            gate = asyncio.Event()
            fetch = world.kv.get

            async def slow_get(key: str) -> Any:
                await gate.wait()
                return await fetch(key)

            world.kv.get = slow_get  # type: ignore[method-assign]
            chunks = world.transport.chunks(LINK)
            woken = asyncio.Event()
            loop = asyncio.get_running_loop()
            chunks.set_wakeup(lambda: loop.call_soon_threadsafe(woken.set))  # type: ignore[attr-defined]
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), {"data": LARGE, "finished": False})
            began = time.monotonic()
            assert await asyncio.to_thread(chunks.get, ChunkKey("r", "a", 0)) is None
            assert time.monotonic() - began < 1
            woken.clear()
            gate.set()
            await woken.wait()
            assert (await eventually_got(chunks, ChunkKey("r", "a", 0)))["data"] == LARGE

    asyncio.run(main())


def test_tr7_a_chunk_outlives_a_failure_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message was acknowledged when it was taken, so nobody sends it again."""
    monkeypatch.setattr("stagewire.claims.chunks.FIRST_PAUSE", 0.001)

    async def main() -> None:
        async with opened() as world:
            chunks = world.transport.chunks(LINK)
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), {"data": LARGE, "finished": True})
            fetch, failures = world.kv.get, iter([True, True, True])

            async def failing_get(key: str) -> Any:
                if next(failures, False):
                    raise KVError("out of reach")
                return await fetch(key)

            world.kv.get = failing_get  # type: ignore[method-assign]
            assert (await eventually_got(chunks, ChunkKey("r", "a", 0)))["data"] == LARGE

    asyncio.run(main())


def test_tr7_a_store_that_stays_away_is_reported_and_the_chunk_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewire.claims.chunks.STORE_TIMEOUT", 0.05)

    async def main() -> None:
        async with opened() as world:
            chunks = world.transport.chunks(LINK)
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), {"data": LARGE, "finished": True})
            fetch = world.kv.get

            async def failing_get(key: str) -> Any:
                raise KVError("out of reach")

            world.kv.get = failing_get  # type: ignore[method-assign]
            with pytest.raises(Retryable, match="out of reach"):
                await eventually_got(chunks, ChunkKey("r", "a", 0))
            world.kv.get = fetch  # type: ignore[method-assign]
            async with asyncio.timeout(5):
                while True:
                    try:
                        message = await eventually_got(chunks, ChunkKey("r", "a", 0))
                        break
                    except Retryable:
                        continue
            assert message["data"] == LARGE

    asyncio.run(main())


def test_tr5_few_payloads_are_fetched_at_once() -> None:
    async def main() -> None:
        async with opened() as world:
            chunks = world.transport.chunks(LINK)
            fetch, now, most = world.kv.get, 0, 0

            async def counting_get(key: str) -> Any:
                nonlocal now, most
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1
                return await fetch(key)

            world.kv.get = counting_get  # type: ignore[method-assign]
            keys = [ChunkKey(f"r{number}", "a", 0) for number in range(40)]
            for key in keys:
                await asyncio.to_thread(chunks.put, key, {"data": LARGE, "finished": True})
            for key in keys:
                chunks.get(key)
            for key in keys:
                await eventually_got(chunks, key)
            assert most == FETCHES

    asyncio.run(main())


def test_tr10_a_claim_whose_payload_is_gone_is_a_typed_error() -> None:
    async def main() -> None:
        async with opened() as world:
            chunks = world.transport.chunks(LINK)
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), {"data": LARGE, "finished": False})
            for key in await world.kv.keys():
                await world.kv.delete(key)
            with pytest.raises(ChunkExpired, match="is gone"):
                await eventually_got(chunks, ChunkKey("r", "a", 0))

    asyncio.run(main())


def test_tr10_a_put_that_is_tried_again_stores_its_payload_once() -> None:
    async def main() -> None:
        async with opened() as world:
            inner = world.inner.chunks(LINK)
            attempts: list[Any] = []

            def failing(items: Any) -> list[Exception | None]:
                attempts.extend(items)
                return [Retryable("later") for _ in items] if len(attempts) == 1 else list(inner.put_many(items))  # type: ignore[attr-defined]

            chunks: Any = world.transport.chunks(LINK)
            chunks._inner.put_many = failing
            message: ChunkMessage = {"data": LARGE, "finished": True}
            with pytest.raises(Retryable, match="later"):
                await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), message)
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), message)
            assert len(await world.kv.keys()) == 1
            assert attempts[0][1] is attempts[1][1], "a repeat is the same message object"

    asyncio.run(main())


def test_tr10_a_message_that_cannot_be_sent_leaves_no_payload_behind() -> None:
    async def main() -> None:
        async with opened() as world:
            chunks: Any = world.transport.chunks(LINK)
            chunks._inner.put_many = lambda items: [Permanent("never") for _ in items]
            with pytest.raises(Permanent, match="never"):
                await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), {"data": LARGE, "finished": True})
            await asyncio.sleep(0.01)
            assert await world.kv.keys() == []

    asyncio.run(main())


def test_tr10_a_store_that_fails_fails_that_chunk_only() -> None:
    async def main() -> None:
        async with opened() as world:

            async def refuse(*_arguments: object) -> None:
                raise KVError("full")

            world.kv.put = refuse  # type: ignore[method-assign, assignment]
            chunks: Any = world.transport.chunks(LINK)
            large = (ChunkKey("r", "a", 0), {"data": LARGE, "finished": False})
            small = (ChunkKey("s", "a", 0), {"data": 1, "finished": False})
            results = await asyncio.to_thread(chunks.put_many, [large, small])
            assert isinstance(results[0], Retryable)
            assert "full" in str(results[0])
            assert results[1] is None

    asyncio.run(main())


def test_tk5_close_waits_for_keys_no_longer_than_its_grace() -> None:
    async def main() -> None:
        async with opened() as world:
            forever = asyncio.Event()

            async def hang(*_arguments: object) -> None:
                await forever.wait()

            world.kv.put = hang  # type: ignore[method-assign, assignment]
            check = asyncio.create_task(world.check.check_in(LARGE))
            await asyncio.sleep(0)
            began = time.monotonic()
            await world.check.close()
            assert 0.04 < time.monotonic() - began < 2, "the grace is 0.05 s"
            with pytest.raises(Retryable, match="stopped before"):
                await check

    asyncio.run(main())


def test_tr6_a_claim_that_nobody_redeems_ends_with_its_lease_although_its_sender_lives() -> None:
    async def main() -> None:
        async with opened(ttl=60) as world:
            chunks = world.transport.chunks(LINK)
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), {"data": LARGE, "finished": False})
            world.now = 44
            await asyncio.to_thread(chunks.put, ChunkKey("s", "a", 0), {"data": LARGE, "finished": False})
            assert len(await world.kv.keys()) == 2
            world.now = 61
            assert len(await world.kv.keys()) == 1, "the second one was put under a lease of its own"
            world.now = 44 + 61
            assert await world.kv.keys() == []

    asyncio.run(main())


def test_tr10_mailboxes_carry_large_payloads_and_replies_by_claim() -> None:
    async def main() -> None:
        async with opened() as world:
            batches = world.transport.batches()
            await batches.put_batch("jobs", [Message(LARGE, {"kind": "big"}), Message("small")])
            assert len(await world.kv.keys()) == 1
            async with batches.get_batch("jobs", limit=2) as batch:
                assert [delivery.message for delivery in batch] == [Message(LARGE, {"kind": "big"}), Message("small")]
                assert len(await world.kv.keys()) == 1, "still there, should the handler fail"
            assert await world.kv.keys() == []

            async def serve() -> None:
                async with batches.get_batch("rpc") as (delivery,):
                    await delivery.reply(LARGE)

            server = asyncio.create_task(serve())
            assert (await batches.request("rpc", Message(1), timeout=5)).payload == LARGE
            await server
            assert await world.kv.keys() == []

    asyncio.run(main())


def test_tr10_a_message_that_asks_for_it_never_travels_as_a_claim() -> None:
    async def main() -> None:
        async with opened() as world:
            batches = world.transport.batches()
            await batches.put_batch("jobs", [Message(LARGE, {INLINE: "1"})])
            assert await world.kv.keys() == []
            async with batches.get_batch("jobs") as (delivery,):
                assert delivery.message.payload == LARGE

    asyncio.run(main())


def test_tr2_a_batch_that_was_given_back_still_has_its_payload() -> None:
    async def main() -> None:
        async with opened() as world:
            batches = world.transport.batches()
            await batches.put_batch("jobs", [Message(LARGE)])
            with pytest.raises(RuntimeError):
                async with batches.get_batch("jobs"):
                    raise RuntimeError("the handler failed")
            async with batches.get_batch("jobs") as (delivery,):
                assert delivery.redelivered
                assert delivery.message.payload == LARGE

    asyncio.run(main())


def test_tr10_cleanup_drops_what_is_being_fetched() -> None:
    async def main() -> None:
        async with opened() as world:
            chunks: Any = world.transport.chunks(LINK)
            await asyncio.to_thread(chunks.put, ChunkKey("r", "a", 0), {"data": LARGE, "finished": False})
            await asyncio.to_thread(chunks.get, ChunkKey("r", "a", 0))
            await asyncio.to_thread(chunks.cleanup, "r")
            assert chunks._fetching == {}
            assert await asyncio.to_thread(chunks.get, ChunkKey("r", "a", 0)) is None

    asyncio.run(main())
