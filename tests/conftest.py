"""Services for integration tests: private instances, else the URL in the environment, else testcontainers.

A service that cannot be had skips the test with the reason; with CI=true it fails it.
"""

from __future__ import annotations

import gc
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import settings

from stagewire.testing.services import PrivateRabbitMQ, PrivateRedis, ServiceUnavailable

_numbers = itertools.count()

settings.register_profile("any machine", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _collect_dropped_connections(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect, right after a test of Redis, what redis-py dropped without waiting for its socket to close.

    It does so with the connection of a command that was cancelled or timed out. Where the event loop ended first, the
    socket warns when it is collected, which would fail whatever test runs then.
    """
    yield
    if "redis" in request.node.nodeid:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture
def shm(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one, else on the disk; removed with all that is in it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="test-", dir=memory if memory.is_dir() else tmp_path) as directory:
        yield Path(directory)


def missing(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def unavailable() -> Callable[[str], NoReturn]:
    """What a test calls, with the reason, when the machine lacks something that it needs."""
    return missing


def from_container(kind: str, module: str, options: dict[str, Any], stack: ExitStack) -> Any:
    """Start a container; the import and the constructor both need a Docker engine, so neither runs at collection."""
    try:
        container = getattr(__import__(f"testcontainers.{module}", fromlist=[kind]), kind)(**options)
        return stack.enter_context(container)
    except Exception as error:
        missing(f"no {module} on this machine, in the environment or in a container: {error}")


@pytest.fixture(scope="session")
def rabbitmq_node() -> Iterator[PrivateRabbitMQ | None]:
    """One private RabbitMQ node for the session, or None when the environment names another broker."""
    with ExitStack() as stack:
        try:
            yield stack.enter_context(PrivateRabbitMQ())
        except ServiceUnavailable:
            yield None


@pytest.fixture(scope="session")
def foreign_amqp_url(rabbitmq_node: PrivateRabbitMQ | None) -> Iterator[str | None]:
    """The URL of a broker that the tests did not start, where no private node could be had."""
    with ExitStack() as stack:
        if rabbitmq_node is not None:
            yield None
        elif url := os.environ.get("STAGEWIRE_TEST_AMQP_URL"):
            yield url
        else:
            container = from_container("RabbitMqContainer", "rabbitmq", {"image": "rabbitmq:3-management"}, stack)
            host, port = container.get_container_host_ip(), container.get_exposed_port(5672)
            yield f"amqp://guest:guest@{host}:{port}/%2F"


@pytest.fixture
def amqp_url(rabbitmq_node: PrivateRabbitMQ | None, foreign_amqp_url: str | None) -> Iterator[str]:
    """The URL of a broker: a virtual host of the test's own where the node is private."""
    if rabbitmq_node is None:
        assert foreign_amqp_url is not None
        yield foreign_amqp_url
        return
    name = f"test{next(_numbers)}"
    yield rabbitmq_node.make_vhost(name)
    rabbitmq_node.drop_vhost(name)


@pytest.fixture
def broker_settings() -> tuple[str, ...]:
    """Further lines of `mortal_rabbitmq`'s configuration; a test's parameter of this name takes its place."""
    return ()


@pytest.fixture
def mortal_rabbitmq(broker_settings: tuple[str, ...]) -> Iterator[PrivateRabbitMQ]:
    """A RabbitMQ node of the test's own, to be killed."""
    try:
        with PrivateRabbitMQ(*broker_settings) as node:
            yield node
    except ServiceUnavailable as unavailable:
        missing(str(unavailable))


@pytest.fixture
def mortal_redis() -> Iterator[PrivateRedis]:
    """A Redis server of the test's own, to be killed."""
    try:
        with PrivateRedis() as server:
            yield server
    except ServiceUnavailable as unavailable:
        missing(str(unavailable))


@pytest.fixture
def redis_url() -> Iterator[str]:
    """The URL of an empty Redis."""
    with ExitStack() as stack:
        try:
            yield stack.enter_context(PrivateRedis()).url
        except ServiceUnavailable:
            if url := os.environ.get("STAGEWIRE_TEST_REDIS_URL"):
                yield url
            else:
                container = from_container("RedisContainer", "redis", {"image": "redis:7"}, stack)
                yield f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"
