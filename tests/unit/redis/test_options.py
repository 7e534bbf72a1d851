"""What the Redis backends take, say and load before any server is reached."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest
from pydantic import ValidationError

from stagewire import Closed
from stagewire.testing import StubContext
from stagewire_redis import RedisKVOptions, RedisLeaseOptions, make_kv, make_lease
from stagewire_redis.plugin import stagewire_kv_backends, stagewire_lease_backends


def test_the_plugin_loads_no_driver() -> None:
    program = (
        "import sys, stagewire_redis, stagewire_redis.plugin as plugin\n"
        "plugin.stagewire_kv_backends(), plugin.stagewire_lease_backends()\n"
        "assert not {'redis', 'hiredis'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_both_backends_are_offered_with_what_to_install() -> None:
    for provider in (*stagewire_kv_backends(), *stagewire_lease_backends()):
        assert provider.name == "redis"
        assert provider.extra is not None
        assert provider.extra.name == "redis"


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:6379/0",
        "redis://host",
        "redis://user:p%40ss%2Fword@host:1/15",
        "rediss://host:6380/0?ssl_ca_certs=/etc/ca.pem&ssl_cert_reqs=required",
        "unix:///run/redis.sock?db=3",
        "unix://user:word@/run/redis.sock",
    ],
)
def test_urls_that_are_taken(url: str) -> None:
    assert RedisKVOptions.model_validate({"url": url}).url.get_secret_value() == url


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("http://host", "must begin with redis://"),
        ("redis://:hunter2/x@host:6379/0", "of a password as %XX"),
        ("redis://:hunter2#x@host:6379/0", "of a password as %XX"),
        ("redis://:hunter2?x@host:6379/0", "of a password as %XX"),
        ("redis://:ok@host:hunter2/0", "is the port a number"),
        ("redis://host/hunter2", "it is a number, as in"),
        ("unix:///run/redis.sock?db=hunter2", "it is a number, as in"),
        ("redis://host/0?ssl_ca_certs=hunter2", "not supported"),
        ("redis://host/0?protocol=2", "not supported"),
        ("redis://host/0?hunter2=1", "not supported"),
    ],
)
def test_urls_that_are_refused_without_their_secrets(url: str, what: str) -> None:
    with pytest.raises(ValidationError, match=what) as caught:
        RedisKVOptions.model_validate({"url": url})
    assert "hunter2" not in str(caught.value)


def test_options_show_no_password() -> None:
    options = RedisKVOptions.model_validate({"url": "redis://:hunter2@host/0"})
    assert "hunter2" not in repr(options) + options.model_dump_json()


def test_a_backend_that_is_not_open_says_so() -> None:
    async def main() -> None:
        context = StubContext(clock=time.monotonic)
        kv, lease = make_kv(RedisKVOptions(), context), make_lease(RedisLeaseOptions(), context)
        with pytest.raises(Closed, match="not open"):
            await kv.get("key")
        with pytest.raises(Closed, match="not open"):
            await lease.grant(1)
        await kv.close()
        await lease.close()
        with pytest.raises(Closed, match="was closed"):
            await kv.open()

    asyncio.run(main())
