"""Stores in a directory of the test's own, on a clock that is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from stagewire.testing import Stores, StubContext
from stagewire.testing.context import ManualClock
from stagewire_shm import ShmKVOptions, ShmLeaseOptions, make_kv, make_lease

Opener = Callable[..., AbstractAsyncContextManager[Stores]]
Scenario = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(shm: Path, clock: ManualClock) -> Opener:
    """Open both backends; each call is what a process of its own would be."""

    @asynccontextmanager
    async def open_stores(timeout: float = 5.0, **options: Any) -> AsyncIterator[Stores]:
        context = StubContext(clock=clock)
        kv = make_kv(ShmKVOptions(directory=shm, timeout=timeout, **options), context)
        lease = make_lease(ShmLeaseOptions(directory=shm, timeout=timeout), context)
        try:
            await kv.open()
            await lease.open()
            yield Stores(kv, lease)
        finally:
            await lease.close()
            await kv.close()

    return open_stores


@pytest.fixture
def run() -> Scenario:
    return asyncio.run


@pytest.fixture
def segments(shm: Path) -> Callable[[], dict[str, int]]:
    """Return the files of the pool and their sizes."""
    return lambda: {path.name: path.stat().st_size for path in shm.glob("stagewire-*/segment-*")}
