"""What is not as it should be is a named error; what is cut off leaves nothing."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stagewire import KVError, LeaseLost
from stagewire.testing import StubContext
from stagewire_shm import mapping
from stagewire_shm.plugin import stagewire_kv_backends, stagewire_lease_backends

from .conftest import Opener, Scenario

MIB = 1024 * 1024
Files = Callable[[], dict[str, int]]


def place(shm: Path) -> Path:
    return shm / f"stagewire-{os.geteuid()}-default"


def opens(opened: Opener, run: Scenario, **options: Any) -> None:
    async def main() -> None:
        async with opened(**options):
            pass

    run(main())


def test_kv_other_processes_reach_it_and_it_names_its_threshold() -> None:
    (kv,), (lease,) = stagewire_kv_backends(), stagewire_lease_backends()
    assert not kv.capabilities
    assert not lease.capabilities
    assert kv.factory(kv.options(), StubContext()).reference_threshold == 64 * 1024


def test_kv_the_directory_is_private(shm: Path, opened: Opener, run: Scenario) -> None:
    before = os.umask(0)
    try:
        opens(opened, run)
    finally:
        os.umask(before)
    assert place(shm).stat().st_mode & 0o777 == 0o700


def test_kv_a_directory_that_others_may_enter_is_refused(shm: Path, opened: Opener, run: Scenario) -> None:
    place(shm).mkdir()
    place(shm).chmod(0o755)
    with pytest.raises(KVError, match=r"open to other users \(mode 755\): chmod 700"):
        opens(opened, run)


def test_kv_a_link_or_a_file_is_refused(shm: Path, opened: Opener, run: Scenario) -> None:
    (shm / "elsewhere").mkdir(mode=0o700)
    place(shm).symlink_to(shm / "elsewhere")
    with pytest.raises(KVError, match="is not a directory: remove it"):
        opens(opened, run)
    place(shm).unlink()
    place(shm).touch()
    with pytest.raises(KVError, match="is not a directory: remove it"):
        opens(opened, run)


def test_kv_another_users_directory_is_refused(
    shm: Path, opened: Opener, run: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(shm).mkdir(mode=0o700)
    place(shm).rename(shm / "stagewire-54321-default")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(KVError, match=r"belongs to user .*, not to you"):
        opens(opened, run)


def test_kv_a_missing_parent_is_named(opened: Opener, run: Scenario, shm: Path) -> None:
    shm.rmdir()
    try:
        with pytest.raises(KVError, match=f"shared memory {shm}"):
            opens(opened, run)
    finally:
        shm.mkdir()


def test_kv_a_budget_above_the_file_system_is_refused(opened: Opener, run: Scenario) -> None:
    with pytest.raises(KVError, match="docker run --shm-size"):
        opens(opened, run, max_bytes=2**60)


@pytest.mark.parametrize("content", [b"garbage" * 2000, b"SQLite format 3\x00" + bytes(5000)])
def test_kv_a_damaged_index_is_a_named_error(shm: Path, opened: Opener, run: Scenario, content: bytes) -> None:
    place(shm).mkdir(mode=0o700)
    (place(shm) / "index").write_bytes(content)
    with pytest.raises(KVError, match=r"is damaged \(.*\): stop what uses it and remove the directory"):
        opens(opened, run)


def test_kv_an_index_damaged_in_use_is_a_named_error(shm: Path, opened: Opener, run: Scenario) -> None:
    async def main() -> None:
        async with opened() as stores:
            await stores.kv.put("key", b"value")
            (place(shm) / "index").write_bytes(b"garbage" * 8000)
            with pytest.raises(KVError, match="is damaged"):
                await stores.kv.get("key")
            with pytest.raises(KVError, match="is damaged"):
                await stores.kv.put("key", b"value")

    run(main())


def test_kv_another_version_is_refused(shm: Path, opened: Opener, run: Scenario) -> None:
    opens(opened, run)
    index = sqlite3.connect(place(shm) / "index")
    index.execute("PRAGMA user_version=7")
    index.close()
    with pytest.raises(KVError, match="is of version 7, not 1"):
        opens(opened, run)


def test_kv_a_lost_or_cut_segment_is_a_named_error(shm: Path, opened: Opener, run: Scenario, segments: Files) -> None:
    async def main() -> None:
        async with opened() as stores:
            await stores.kv.put("key", bytes(MIB))
            (name,) = segments()
            path = place(shm) / name
            os.truncate(path, 1000)
            with pytest.raises(KVError, match=f"{name} is too short"):
                await stores.kv.get("key")
            await stores.kv.delete("key")
            with pytest.raises(KVError, match=f"{name} is too short"):
                await stores.kv.put("other", bytes(MIB))
            path.unlink()
            await stores.kv.put("key", bytes(MIB))
            (name,) = segments()
            (place(shm) / name).unlink()
            with pytest.raises(KVError, match="a file of it is gone"):
                await stores.kv.get("key")
            await stores.kv.put("key", b"again")
            await stores.kv.put("key", bytes(MIB))

    run(main())


def test_kv_a_process_that_stands_still_with_the_index_is_reported(shm: Path, opened: Opener, run: Scenario) -> None:
    async def main() -> None:
        async with opened(timeout=0.05) as stores:
            lock = os.open(place(shm) / "lock", os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                with pytest.raises(KVError, match=r"had its index for 0.05 s"):
                    await stores.kv.get("key")
            finally:
                os.close(lock)
            assert await stores.kv.get("key") is None

    run(main())


def test_kv_a_cancelled_wait_for_the_index_ends_at_once(shm: Path, opened: Opener, run: Scenario) -> None:
    async def main() -> None:
        async with opened(timeout=100.0) as stores:
            lock = os.open(place(shm) / "lock", os.O_RDWR)
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await stores.kv.put("key", b"value")
            finally:
                os.close(lock)
            assert not await stores.kv.exists("key")

    run(main())


def test_kv_a_cancelled_put_no_longer_reads_the_value(
    opened: Opener, run: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller may change the value once the put has ended, however it ended."""
    writing, go_on = threading.Event(), threading.Event()
    write = mapping.write

    def wait_then_write(descriptor: int, value: memoryview, stop: threading.Event) -> None:
        writing.set()
        go_on.wait(10)
        write(descriptor, value, stop)

    monkeypatch.setattr(mapping, "write", wait_then_write)

    async def main() -> None:
        async with opened() as stores:
            put = asyncio.create_task(stores.kv.put("key", bytearray(MIB)))
            await asyncio.to_thread(writing.wait, 10)
            put.cancel()
            await asyncio.sleep(0)
            put.cancel()
            done, _ = await asyncio.wait({put}, timeout=0.02)
            assert not done, "it waits for the thread that reads the value"
            go_on.set()
            await asyncio.wait({put})
            assert put.cancelled()
            assert not await stores.kv.exists("key")

    run(main())


def test_ls7_a_lease_that_ends_during_the_copy_stores_nothing(
    opened: Opener, run: Scenario, segments: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def wait(*_arguments: Any) -> None:
        writing.set()
        go_on.wait(10)

    monkeypatch.setattr(mapping, "write", wait)

    async def main() -> None:
        async with opened() as stores:
            lease = await stores.lease.grant(60)
            put = asyncio.create_task(stores.kv.put("key", bytes(MIB), lease))
            await asyncio.to_thread(writing.wait, 10)
            await stores.lease.revoke(lease)
            go_on.set()
            with pytest.raises(LeaseLost):
                await put
            assert not await stores.kv.exists("key")
            await stores.kv.put("other", bytes(MIB))
            assert len(segments()) == 1, "the segment went back into the pool"

    run(main())


def test_ls1_a_lease_of_another_store_holds_nothing(opened: Opener, run: Scenario) -> None:
    async def main() -> None:
        async with opened() as stores, opened(name="other") as others:
            lease = await stores.lease.grant(60)
            with pytest.raises(LeaseLost):
                await others.kv.put("key", b"value", lease)

    run(main())
