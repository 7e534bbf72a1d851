"""Large values in parts, commands that run twice, commands that are cancelled, and how many connections there are."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from stagewire import Closed, KVError, Lease
from stagewire.testing import Stores, no_task_leaks
from stagewire.testing.services import FaultProxy, PrivateRedis
from stagewire_redis.scripts import GRANT, PUT, REVOKE
from stagewire_redis.server import Server

pytestmark = pytest.mark.integration
MIB = 1024 * 1024
Peek = Callable[[str], Any]


async def read(stores: Stores, key: str) -> bytes | None:
    holder = await stores.kv.get(key)
    return None if holder is None else bytes(holder.data)


async def send_parts(kv: Any, parts: list[str], lease: Lease) -> None:
    """Send 3 MiB, and do not make them visible."""
    for commands in kv._part_commands(parts, memoryview(bytes(3 * MIB)), lease):
        await kv._server.commands(*commands)


def with_server(test: Any, opened: Any, url: str, **options: Any) -> None:
    async def main() -> None:
        async with no_task_leaks(), opened(url, **options) as stores:
            await test(stores)

    asyncio.run(main())


def test_the_parts_of_an_overwritten_value_go(opened: Any, redis_url: str, peek: Peek) -> None:
    async def main(stores: Stores) -> None:
        lease = await stores.lease.grant(60)
        with peek(redis_url) as client:
            await stores.kv.put("key", bytes(5 * MIB), lease)
            assert len(client.keys("stagewire:p:*")) == 5
            await stores.kv.put("key", b"\x01" * (3 * MIB))
            assert len(client.keys("stagewire:p:*")) == 3
            assert all(0 < client.pttl(name) <= 60_000 for name in client.keys("stagewire:[pmov]:*")), "still tied"
            await stores.kv.put("key", b"small")
            assert client.keys("stagewire:[pm]:*") == []
            await stores.kv.put("key", bytes(2 * MIB))
            await stores.kv.delete("key")
            assert client.keys("stagewire:[pmvot]*") == []

    with_server(main, opened, redis_url)


def test_a_reader_sees_one_whole_value_while_it_is_overwritten(opened: Any, redis_url: str) -> None:
    values = {bytes([number]) * (size * MIB) for number, size in ((1, 3), (2, 4))} | {b"small"}

    async def main(stores: Stores) -> None:
        done = asyncio.Event()

        async def write() -> None:
            for _ in range(6):
                for value in values:
                    await stores.kv.put("key", value)
            done.set()

        async def look() -> int:
            count = 0
            while not done.is_set():
                assert await read(stores, "key") in values
                count += 1
            return count

        await stores.kv.put("key", b"small")
        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(look()) for _ in range(3)]
            group.create_task(write())
        assert all(reader.result() for reader in readers)

    with_server(main, opened, redis_url)


def test_a_value_deleted_while_it_is_read_is_none_and_not_empty(opened: Any, redis_url: str) -> None:
    async def main(stores: Stores) -> None:
        kv: Any = stores.kv
        join = kv._join

        async def join_too_late(parts: list[bytes]) -> Any:
            await kv.delete("key")
            return await join(parts)

        kv._join = join_too_late
        await kv.put("key", bytes(3 * MIB))
        assert await kv.get("key") is None

    with_server(main, opened, redis_url)


def test_tk5_a_sender_that_died_before_its_value_was_whole_leaves_nothing_beyond_the_ttl(
    opened: Any, redis_url: str, peek: Peek
) -> None:
    async def main(stores: Stores) -> None:
        lease: Any = await stores.lease.grant(0.4)
        kv: Any = stores.kv
        await send_parts(kv, kv._name_parts(3 * MIB), lease)  # and then SIGKILL
        assert await kv.keys() == []
        with peek(redis_url) as client:
            assert all(0 < client.pttl(name) <= 400 for name in client.keys("stagewire:p:*"))
            await asyncio.sleep(0.5)
            assert client.keys("stagewire:[pmvotl]*") == []

    with_server(main, opened, redis_url)


def test_a_put_that_was_cancelled_between_its_parts_drops_them(opened: Any, redis_url: str, peek: Peek) -> None:
    async def main(stores: Stores) -> None:
        kv: Any = stores.kv
        commit = kv._commit
        reached = asyncio.Event()

        async def never(*_arguments: Any, **_options: Any) -> None:
            reached.set()
            await asyncio.Event().wait()

        kv._commit = never
        put = asyncio.create_task(kv.put("key", bytes(3 * MIB)))
        await reached.wait()
        put.cancel()
        await asyncio.gather(put, return_exceptions=True)
        kv._commit = commit
        await asyncio.gather(*kv._discarding)
        with peek(redis_url) as client:
            assert client.keys("stagewire:[pmv]:*") == []

    with_server(main, opened, redis_url)


def test_a_value_whose_parts_expired_on_the_way_is_refused_and_the_old_one_stays(opened: Any, redis_url: str) -> None:
    async def main(stores: Stores) -> None:
        kv: Any = stores.kv
        await kv.put("key", bytes(2 * MIB))
        with pytest.raises(KVError, match="expired before it was complete"):
            await kv._commit("key", None, b"", "stagewire:p:gone:0")
        assert await read(stores, "key") == bytes(2 * MIB)

    with_server(main, opened, redis_url)


def test_every_script_may_run_twice(opened: Any, redis_url: str) -> None:
    async def main(stores: Stores) -> None:
        server: Server = stores.lease._server  # type: ignore[attr-defined]
        first = await server.run(GRANT, "id", 60_000)
        assert await server.run(GRANT, "id", 60_000) == first
        kv: Any = stores.kv
        lease = Lease("id", int(first), 60, 0)
        parts = kv._name_parts(3 * MIB)
        await send_parts(kv, parts, lease)
        for _ in range(2):
            assert await server.run(PUT, "key", "id", first, b"", *parts) == 1
            assert await read(stores, "key") == bytes(3 * MIB)
        kv._discard("key", parts)
        await asyncio.gather(*kv._discarding)
        assert await read(stores, "key") == bytes(3 * MIB), "what is visible is not discarded"
        for number in range(20):
            await kv.put(f"more{number}", b"value", lease)
        assert await server.run(REVOKE, "id", first, 5) > 0  # the reply is lost, and the call begins anew
        await stores.lease.revoke(lease)
        assert await kv.keys() == []

    with_server(main, opened, redis_url)


def test_cancelled_commands_never_mix_up_replies(opened: Any, redis_url: str) -> None:
    dice = random.Random(20)

    async def main(stores: Stores) -> None:
        values = {f"key{number}": bytes([number]) * dice.choice((10, 100_000, 2 * MIB)) for number in range(20)}
        for key, value in values.items():
            await stores.kv.put(key, value)

        async def look(key: str) -> None:
            assert await read(stores, key) == values[key]
            assert await stores.kv.exists(key)
            assert await stores.kv.get("none") is None

        for _ in range(15):
            tasks = [asyncio.create_task(look(dice.choice(list(values)))) for _ in range(30)]
            for task in tasks:
                asyncio.get_running_loop().call_later(dice.uniform(0, 0.03), task.cancel)
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            wrong = [one for one in outcomes if one is not None and not isinstance(one, asyncio.CancelledError)]
            assert wrong == []
        async with asyncio.timeout(5):
            await asyncio.gather(*(look(key) for key in values))
        pool = stores.kv._server._client.connection_pool  # type: ignore[attr-defined]
        assert not pool._in_use_connections
        assert len(pool._available_connections) <= 4

    with_server(main, opened, redis_url, connections=4)


def test_connections_are_bounded_and_returned(opened: Any, redis_url: str, peek: Peek) -> None:
    with peek(redis_url) as client:
        before = len(client.client_list())

        async def main(stores: Stores) -> None:
            await asyncio.gather(*(stores.kv.put(f"key{number}", bytes(50_000)) for number in range(100)))
            assert len(client.client_list()) - before <= 3 + 3, "3 of each backend"

        with_server(main, opened, redis_url, connections=3)
        deadline = time.monotonic() + 20
        while len(client.client_list()) != before:  # the server notices the end of a connection a little later
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_close_lets_what_is_under_way_end(opened: Any, redis_url: str) -> None:
    async def main(stores: Stores) -> None:
        puts = [asyncio.create_task(stores.kv.put(f"key{number}", bytes(MIB))) for number in range(10)]
        await asyncio.sleep(0)
        closes = [asyncio.create_task(stores.kv.close()) for _ in range(2)]
        await asyncio.sleep(0)
        closes[0].cancel()
        await asyncio.gather(*closes, return_exceptions=True)
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        assert all(one is None or isinstance(one, Closed) for one in outcomes)
        with pytest.raises(Closed):
            await stores.kv.get("key0")

    with_server(main, opened, redis_url, connections=3)


def test_a_put_over_connections_that_keep_breaking_ends_whole_or_with_an_error(
    opened: Any, mortal_redis: PrivateRedis
) -> None:
    dice = random.Random(4)

    async def main(proxy: FaultProxy) -> None:
        async with opened(f"redis://127.0.0.1:{proxy.port}/0", timeout=5) as stores:
            for number in range(12):
                value = bytes([number]) * (3 * MIB)
                asyncio.get_running_loop().call_later(dice.uniform(0, 0.03), proxy.cut)
                await stores.kv.put("key", value)
                assert await read(stores, "key") == value

    with FaultProxy(mortal_redis.port) as proxy:
        asyncio.run(main(proxy))
