"""What goes wrong with a server is named in one line, in time, without secrets."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stagewire import KVError, LeaseLost
from stagewire.testing import Stores
from stagewire.testing.services import FaultProxy, PrivateRedis, free_port

pytestmark = pytest.mark.integration
MIB = 1024 * 1024
Peek = Callable[[str], Any]


def refusal(opened: Any, url: str, **options: Any) -> str:
    """Return what opening the backends says, which has no secret in it."""

    async def main() -> str:
        with pytest.raises(KVError) as caught:
            async with opened(url, **options):
                pass
        return str(caught.value)

    text = asyncio.run(main())
    assert "hunter2" not in text
    assert "\n" not in text
    return text


def test_nobody_listens(opened: Any) -> None:
    assert "it cannot be reached: start it, or correct the url" in refusal(
        opened, f"redis://:hunter2@127.0.0.1:{free_port()}"
    )


def test_a_wrong_password(opened: Any, mortal_redis: PrivateRedis, peek: Peek) -> None:
    with peek(mortal_redis.url) as client:
        client.config_set("requirepass", "right")
    for user in ("", ":hunter2@", "nobody:hunter2@"):
        text = refusal(opened, mortal_redis.url.replace("//", f"//{user}"))
        assert "wrong or missing user name or password: correct the url" in text


def test_a_user_who_may_not(opened: Any, mortal_redis: PrivateRedis, peek: Peek) -> None:
    with peek(mortal_redis.url) as client:
        client.execute_command("ACL", "SETUSER", "reader", "on", ">hunter2", "+@read", "+@connection", "~*")
        client.execute_command("ACL", "SETUSER", "stranger", "on", ">hunter2", "+@all", "~other:*")
    for user in ("reader", "stranger"):
        assert "the user may not do this" in refusal(opened, mortal_redis.url.replace("//", f"//{user}:hunter2@"))


def test_a_user_without_dangerous_commands_is_enough(opened: Any, mortal_redis: PrivateRedis, peek: Peek) -> None:
    with peek(mortal_redis.url) as client:
        client.execute_command(
            "ACL", "SETUSER", "app", "on", ">word", "+@all", "-@dangerous", "-@admin", "~stagewire:*"
        )

    async def main() -> None:
        async with opened(mortal_redis.url.replace("//", "//app:word@")) as stores:
            lease = await stores.lease.grant(10)
            await stores.kv.put("key", bytes(3 * MIB), lease)
            await stores.lease.keepalive(lease)
            assert await stores.kv.keys() == ["key"]
            await stores.lease.revoke(lease)
            assert await stores.kv.keys() == []

    asyncio.run(main())


def test_a_read_only_replica(opened: Any, mortal_redis: PrivateRedis, redis_with: type[PrivateRedis]) -> None:
    with redis_with("--replicaof", "127.0.0.1", str(mortal_redis.port), "--masterauth", "") as replica:
        assert "it is a read-only replica: name the primary" in refusal(opened, replica.url)


def test_a_cluster(opened: Any, redis_with: type[PrivateRedis]) -> None:
    with redis_with("--cluster-enabled", "yes", "--cluster-port", str(free_port())) as server:
        assert "part of a cluster, which is not supported" in refusal(opened, server.url)


def test_tls_where_there_is_none(opened: Any, mortal_redis: PrivateRedis) -> None:
    text = refusal(opened, mortal_redis.url.replace("redis://", "rediss://:hunter2@"), timeout=0.3)
    assert "does only one end speak TLS?" in text


def test_no_tls_where_it_is_expected(
    opened: Any, certificate: tuple[Path, Path], redis_with: type[PrivateRedis]
) -> None:
    certified, key = map(str, certificate)
    port = free_port()
    tls = ("--tls-port", str(port), "--tls-cert-file", certified, "--tls-key-file", key, "--tls-auth-clients", "no")
    with redis_with(*tls):
        assert "does it expect TLS (write rediss://)?" in refusal(opened, f"redis://:hunter2@127.0.0.1:{port}/0")
        assert "TLS failed" in refusal(opened, f"rediss://:hunter2@127.0.0.1:{port}/0"), "an unknown certificate"

        async def main() -> None:
            trusted = f"?ssl_ca_certs={certified}&ssl_check_hostname=false"
            async with opened(f"rediss://127.0.0.1:{port}/0{trusted}") as stores:
                await stores.kv.put("key", bytes(3 * MIB))
                assert await stores.kv.exists("key")

        asyncio.run(main())


def test_a_server_that_evicts_is_refused_unless_allowed(opened: Any, redis_with: type[PrivateRedis]) -> None:
    with redis_with("--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru") as server:
        text = refusal(opened, server.url)
        assert "maxmemory-policy allkeys-lru" in text
        assert "allow_eviction" in text

        async def main() -> None:
            async with opened(server.url, allow_eviction=True) as stores:
                await stores.kv.put("key", b"value")

        asyncio.run(main())


async def fill(stores: Stores, size: int) -> None:
    for number in range(20):
        await stores.kv.put(f"fill-{size}-{number}", bytes(size))


def test_a_full_server_refuses_and_keeps_what_it_has(opened: Any, redis_with: type[PrivateRedis]) -> None:
    async def main(server: PrivateRedis) -> None:
        async with opened(server.url) as stores:
            lease = await stores.lease.grant(60)
            await stores.kv.put("key", b"old", lease)
            for size in (900 * 1024, 3 * MIB):  # whole, and in parts
                with pytest.raises(KVError, match=r"it is full \(maxmemory\): raise the limit"):
                    await fill(stores, size)
            with pytest.raises(KVError, match="it is full"):
                await stores.kv.put("key", bytes(3 * MIB))
            holder = await stores.kv.get("key")
            assert holder is not None
            assert bytes(holder.data) == b"old"
            assert await stores.lease.alive(await stores.lease.keepalive(lease))
            for key in await stores.kv.keys("fill"):
                await stores.kv.delete(key)
            await stores.kv.put("key", b"new")

    with redis_with("--maxmemory", "12mb", "--maxmemory-policy", "noeviction") as server:
        asyncio.run(main(server))


def test_a_full_server_is_found_when_connecting(opened: Any, redis_with: type[PrivateRedis]) -> None:
    with redis_with("--maxmemory", "1") as server:
        assert "it is full (maxmemory)" in refusal(opened, server.url)


def test_a_frozen_server_is_an_error_in_time(opened: Any, mortal_redis: PrivateRedis) -> None:
    async def main() -> None:
        async with opened(mortal_redis.url, timeout=0.3, connections=2) as stores:
            await stores.kv.put("key", b"value")
            mortal_redis.process.pause()
            try:
                began = time.monotonic()
                results = await asyncio.gather(*(stores.kv.get("key") for _ in range(6)), return_exceptions=True)
                assert time.monotonic() - began < 2
            finally:
                mortal_redis.process.resume()
            texts = [str(result) for result in results if isinstance(result, KVError)]
            assert len(texts) == 6
            assert any("no answer within 0.3 s" in text for text in texts)
            assert any("all 2 connections were in use" in text for text in texts)
            holder = await stores.kv.get("key")
            assert holder is not None
            assert bytes(holder.data) == b"value", "and it goes on afterwards"

    asyncio.run(main())


def test_ls7_a_server_that_was_killed_comes_back_without_the_old_leases(
    opened: Any, mortal_redis: PrivateRedis
) -> None:
    async def main() -> None:
        async with opened(mortal_redis.url) as stores:
            old = await stores.lease.grant(60)
            await stores.kv.put("key", b"value", old)
            mortal_redis.kill()
            with pytest.raises(KVError, match=r"cannot be reached|connection broke|closed the connection"):
                await stores.kv.put("key", b"lost", old)
            mortal_redis.start()
            assert await stores.kv.get("key") is None
            with pytest.raises(LeaseLost):
                await stores.lease.keepalive(old)
            with pytest.raises(LeaseLost):
                await stores.kv.put("key", b"too late", old)
            new = await stores.lease.grant(60)
            assert new.generation > old.generation
            await stores.kv.put("key", b"value", new)

    asyncio.run(main())


def test_a_half_open_connection_is_an_error_in_time(opened: Any, mortal_redis: PrivateRedis) -> None:
    async def main(proxy: FaultProxy) -> None:
        async with opened(f"redis://127.0.0.1:{proxy.port}/0", timeout=0.3) as stores:
            await stores.kv.put("key", b"value")
            proxy.half_open()
            began = time.monotonic()
            with pytest.raises(KVError, match=r"no answer within 0\.3 s"):
                await stores.kv.put("key", bytes(3 * MIB))
            assert time.monotonic() - began < 1
            proxy.cut()
            proxy.half_open(on=False)
            holder = await stores.kv.get("key")
            assert holder is not None
            assert bytes(holder.data) == b"value"

    with FaultProxy(mortal_redis.port) as proxy:
        asyncio.run(main(proxy))


async def work_until(stop: asyncio.Event, stores: Stores, number: int) -> None:
    """Take a lease, put and get, over and over; whatever is stored is what was put."""
    value = bytes([number]) * (200_000 if number % 2 else 2 * MIB)
    while not stop.is_set():
        try:
            lease = await stores.lease.grant(0.5)
            await stores.kv.put(f"key{number}", value, lease)
            holder = await stores.kv.get(f"key{number}")
            assert holder is None or holder.data == value
            await stores.lease.keepalive(lease)
        except (KVError, LeaseLost):
            await asyncio.sleep(0.01)


def test_a_server_killed_under_load_hangs_nobody_and_leaves_nothing(
    opened: Any, mortal_redis: PrivateRedis, peek: Peek
) -> None:
    dice = random.Random(7)

    async def main() -> None:
        async with opened(mortal_redis.url) as stores:
            stop = asyncio.Event()
            workers = [asyncio.create_task(work_until(stop, stores, number)) for number in range(20)]
            for _ in range(4):
                await asyncio.sleep(dice.uniform(0.05, 0.3))
                mortal_redis.kill()
                await asyncio.sleep(dice.uniform(0, 0.1))
                mortal_redis.start()
            await asyncio.sleep(0.2)
            stop.set()
            async with asyncio.timeout(5):
                await asyncio.gather(*workers)
            await stores.kv.put("after", b"value")
            await stores.kv.delete("after")
        await asyncio.sleep(0.6)
        with peek(mortal_redis.url) as client:
            assert set(client.keys()) <= {"stagewire:generation"}, "nothing is left after the TTL"

    asyncio.run(main())


def test_a_connection_cut_in_the_middle_of_a_reply_is_made_up_for(opened: Any, mortal_redis: PrivateRedis) -> None:
    async def main(proxy: FaultProxy) -> None:
        async with opened(f"redis://127.0.0.1:{proxy.port}/0") as stores:
            value = bytes(range(256)) * 4096
            await stores.kv.put("key", value)
            proxy.throttle(2 * MIB)
            read = asyncio.create_task(stores.kv.get("key"))
            await asyncio.sleep(0.15)
            assert not read.done()
            proxy.throttle(None)
            proxy.cut()
            holder = await read
            assert holder is not None
            assert holder.data == value

    with FaultProxy(mortal_redis.port) as proxy:
        asyncio.run(main(proxy))


def test_a_unix_socket(opened: Any, mortal_redis: PrivateRedis) -> None:
    async def main() -> None:
        async with opened(f"unix://{mortal_redis.socket_path}?db=2") as stores:
            await stores.kv.put("key", b"value")
            assert await stores.kv.keys() == ["key"]
        async with opened(mortal_redis.url) as stores:
            assert await stores.kv.keys() == [], "another database"

    asyncio.run(main())
    mortal_redis.kill()
    assert f"Redis at {mortal_redis.socket_path}: it cannot be reached" in refusal(
        opened, f"unix://{mortal_redis.socket_path}?db=2"
    )
