"""Ties and batches: what the conformance suite does not look at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stagewire import LeaseLost
from stagewire.testing import Stores
from stagewire_redis.scripts import BATCH

pytestmark = pytest.mark.integration
MIB = 1024 * 1024
Peek = Callable[[str], Any]


def with_server(test: Any, opened: Any, url: str) -> None:
    async def main() -> None:
        async with opened(url) as stores:
            await test(stores)

    asyncio.run(main())


async def tie_many(stores: Stores, count: int, ttl: float) -> Any:
    lease = await stores.lease.grant(ttl)
    for start in range(0, count, 100):
        await asyncio.gather(*(stores.kv.put(f"key{number}", b"v", lease) for number in range(start, start + 100)))
    return lease


def test_ls1_keepalive_extends_thousands_of_keys_in_batches(opened: Any, redis_url: str, peek: Peek) -> None:
    async def main(stores: Stores) -> None:
        lease = await tie_many(stores, 3_000, 20)
        with peek(redis_url) as client:
            client.config_set("slowlog-log-slower-than", 50_000)
            client.slowlog_reset()
            names = client.keys("stagewire:[vo]:*")
            assert len(names) == 6_000
            pipeline = client.pipeline()
            for name in names:
                pipeline.pexpire(name, 10_000)
            pipeline.execute()
            calls_before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
            await stores.lease.keepalive(lease)
            calls = client.info("commandstats")["cmdstat_evalsha"]["calls"] - calls_before
            assert calls >= 3_000 / (BATCH * 2), "in batches"
            for name in names:
                pipeline.pttl(name)
            assert min(pipeline.execute()) > 15_000
            await stores.lease.revoke(lease)
            assert client.keys("stagewire:[vomptl]*") == []
            assert client.slowlog_get() == [], "no call blocks the server for 50 ms"

    with_server(main, opened, redis_url)


def test_ls1_everything_of_a_lease_that_ran_out_is_gone(opened: Any, redis_url: str, peek: Peek) -> None:
    async def main(stores: Stores) -> None:
        lease = await tie_many(stores, 100, 0.6)
        await stores.kv.put("large", bytes(3 * MIB), lease)
        await stores.lease.attach(lease, "later")
        await asyncio.sleep(0.7)
        with peek(redis_url) as client:
            assert set(client.keys("*")) <= {"stagewire:generation"}
            assert client.ttl("stagewire:generation") > 0

    with_server(main, opened, redis_url)


def test_ls1_a_tie_moves_to_another_lease_and_its_owner_lets_go(opened: Any, redis_url: str, peek: Peek) -> None:
    async def main(stores: Stores) -> None:
        short, long = await stores.lease.grant(0.3), await stores.lease.grant(60)
        await stores.kv.put("key", bytes(2 * MIB), short)
        await stores.lease.attach(long, "key")
        with peek(redis_url) as client:
            assert client.smembers(f"stagewire:tied:{short.id}") == set()
        await stores.lease.keepalive(short)
        await asyncio.sleep(0.4)
        assert not await stores.lease.alive(short)
        holder = await stores.kv.get("key")
        assert holder is not None
        await stores.lease.revoke(long)
        assert await stores.kv.get("key") is None

    with_server(main, opened, redis_url)


def test_ls1_a_value_put_after_its_lease_ended_is_free(opened: Any, redis_url: str, peek: Peek) -> None:
    async def main(stores: Stores) -> None:
        lease = await stores.lease.grant(60)
        await stores.lease.attach(lease, "key")
        await stores.lease.revoke(lease)
        await stores.kv.put("key", b"free")
        with peek(redis_url) as client:
            assert client.pttl("stagewire:v:key") == -1
            assert client.exists("stagewire:o:key") == 0

    with_server(main, opened, redis_url)


def test_ls7_an_attach_under_an_ended_lease_changes_nothing(opened: Any, redis_url: str) -> None:
    async def main(stores: Stores) -> None:
        ended, alive = await stores.lease.grant(60), await stores.lease.grant(60)
        await stores.kv.put("key", b"value", alive)
        await stores.lease.revoke(ended)
        with pytest.raises(LeaseLost):
            await stores.lease.attach(ended, "key")
        await stores.lease.revoke(ended)
        assert await stores.kv.exists("key")

    with_server(main, opened, redis_url)


def test_ls7_generations_increase_although_the_server_lost_its_data(opened: Any, redis_url: str, peek: Peek) -> None:
    async def main(stores: Stores) -> None:
        last = 0
        with peek(redis_url) as client:
            for _ in range(5):
                for _ in range(20):
                    generation = (await stores.lease.grant(10)).generation
                    assert generation > last
                    last = generation
                client.flushall()
            client.set("stagewire:generation", str(last + 10**9))  # the server's clock stepped back
            assert (await stores.lease.grant(10)).generation == last + 10**9 + 1

    with_server(main, opened, redis_url)


def test_keys_with_wildcards_are_listed_as_they_are(opened: Any, redis_url: str) -> None:
    async def main(stores: Stores) -> None:
        keys = ["a*b", "a?b", "a[x]b", "a\\b", "a^b-c", "aXb", "ä"]
        for key in keys:
            await stores.kv.put(key, b"value")
        for key in keys:
            assert await stores.kv.keys(key) == [key]

    with_server(main, opened, redis_url)
