"""Cut a process off at each call of its work on a store, and look at what it left. Run as a program.

    python cut.py DIRECTORY

A child is forked for each call: the n-th one kills itself right before the store's n-th call of a function written in
C: a statement of the index, a lock, a map, a file. The parent then opens the store and checks it.
Prints the number of cuts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

from stagewire.testing import StubContext
from stagewire_shm import ShmKVOptions, ShmLeaseOptions, make_kv, make_lease

SIZE, TTL = 100_000, 60.0
OLD, NEW = b"o" * SIZE, b"n" * SIZE
BUDGET = 3 * 114_688
"""Room for the old value, the new one and one that is held: with one segment left behind, a put fails."""


class Store:
    """Both backends, on a clock that can be put forward."""

    def __init__(self, directory: Path, ahead: float = 0.0) -> None:
        context = StubContext(clock=lambda: time.monotonic() + ahead)
        self.kv = make_kv(ShmKVOptions.model_validate({"directory": directory, "max_bytes": BUDGET}), context)
        self.lease = make_lease(ShmLeaseOptions(directory=directory), context)

    async def __aenter__(self) -> Self:
        await self.kv.open()
        await self.lease.open()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.lease.close()
        await self.kv.close()

    async def read(self) -> bytes | None:
        holder = await self.kv.get("key")
        if holder is None:
            return None
        with holder:
            return bytes(holder.data)


async def work(directory: Path) -> None:
    """Use every path once: open, grant, put, hold, replace, delete, revoke, close."""
    async with Store(directory) as store:
        lease = await store.lease.grant(TTL)
        await store.kv.put("key", OLD, lease)
        holder = await store.kv.get("key")
        await store.kv.put("key", NEW, lease)
        await store.lease.keepalive(lease)
        await store.kv.delete("key")
        await store.lease.revoke(lease)
        assert holder is not None


def killer(calls: int) -> Callable[[FrameType, str, Any], None]:
    """Return a profile function that kills the process at a call."""
    left = [calls]

    def profile(frame: FrameType, event: str, _called: Any) -> None:
        if event == "c_call" and "stagewire_shm" in frame.f_code.co_filename:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return profile


def cut_at(calls: int, directory: Path) -> bool:
    """Run the work in a child that is killed at a call; return whether it came that far."""
    child = os.fork()
    if child == 0:
        profile = killer(calls)
        threading.setprofile(profile)
        sys.setprofile(profile)
        asyncio.run(work(directory))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"the child ended with {status}"
    return status != 0


async def check(directory: Path) -> None:
    """Check that what is visible is whole, that nothing outlives the lease, and that the store works on."""
    async with Store(directory) as store:
        assert await store.read() in (None, OLD, NEW)
    async with Store(directory, ahead=TTL) as store:
        assert await store.kv.keys() == []
        for value in (OLD, NEW, OLD):
            await store.kv.put("key", value)
            assert await store.read() == value
        await store.kv.delete("key")


def check_files(directory: Path) -> None:
    """Check that the last one out has taken the segments with it."""
    left = {path.name for path in next(directory.iterdir()).iterdir()}
    assert left <= {"index", "index-journal", "lock", "users"}, left


def main() -> None:
    directory = Path(sys.argv[1])
    cuts = 0
    while cut_at(cuts, directory):
        asyncio.run(check(directory))
        check_files(directory)
        cuts += 1
    sys.stdout.write(str(cuts))


if __name__ == "__main__":
    main()
