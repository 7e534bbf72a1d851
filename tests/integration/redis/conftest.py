"""Open backends on a private server, a look at what is in it, and connections that can be injured."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from stagewire.testing import Stores, StubContext
from stagewire.testing.services import PrivateRedis
from stagewire_redis import RedisKVOptions, RedisLeaseOptions, make_kv, make_lease

Opener = Callable[..., AbstractAsyncContextManager[Stores]]


@asynccontextmanager
async def open_stores(url: str, **options: Any) -> AsyncIterator[Stores]:
    context, common = StubContext(clock=time.monotonic), {"url": url, "timeout": 2.0, **options}
    part_bytes = common.pop("part_bytes", 1024 * 1024)
    kv = make_kv(RedisKVOptions.model_validate({**common, "part_bytes": part_bytes}), context)
    lease = make_lease(RedisLeaseOptions.model_validate(common), context)
    try:
        await kv.open()
        await lease.open()
        yield Stores(kv, lease)
    finally:
        await lease.close()
        await kv.close()


@pytest.fixture
def redis_url(mortal_redis: PrivateRedis) -> str:
    """The URL of a server that is the test's own: these tests flush it and count what is in it."""
    return mortal_redis.url


@pytest.fixture
def redis_with(mortal_redis: PrivateRedis) -> type[PrivateRedis]:
    """Make a server with further options; the other one only shows that servers can be had here."""
    return type(mortal_redis)


@pytest.fixture
def opened() -> Opener:
    """Open a KV and a lease backend on a URL, with parts of 1 MiB and a timeout of 2 s unless told otherwise."""
    return open_stores


@pytest.fixture
def peek() -> Callable[[str], Any]:
    """A blocking client, for looking into a server."""
    return lambda url: redis.Redis.from_url(url, decode_responses=True)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate that is its own authority, and its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    made, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    where = ["-keyout", str(key), "-out", str(made)]
    subprocess.run(
        [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *where], check=True, capture_output=True
    )
    return made, key
