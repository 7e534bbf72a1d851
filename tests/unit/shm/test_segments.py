"""Segments are used again, but never while anybody can see their bytes; and there are never more than allowed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import MAX_VALUE, Holder, KVBackend, KVError
from stagewire.testing.context import ManualClock
from stagewire_shm.segments import PAGE, capacity_for

from .conftest import Opener, Scenario

MIB = 1024 * 1024
Files = Callable[[], dict[str, int]]


async def held(kv: KVBackend, key: str) -> Holder:
    holder = await kv.get(key)
    assert holder is not None
    return holder


@given(st.integers(1, MAX_VALUE))
def test_kv_a_segment_wastes_a_page_or_a_quarter_at_most(size: int) -> None:
    capacity = capacity_for(size)
    assert capacity % PAGE == 0
    assert size <= capacity <= max(size + PAGE, size * 1.25)
    assert capacity_for(capacity) == capacity


def test_kv_a_segment_is_used_again(opened: Opener, run: Scenario, segments: Files) -> None:
    async def main() -> None:
        async with opened() as stores:
            for number in range(20):
                await stores.kv.put("key", bytes([number]) * MIB)
                await stores.kv.delete("key")
            assert len(segments()) == 1

    run(main())


@pytest.mark.parametrize("ending", ["delete", "replace", "lease"])
def test_tk4_bytes_that_are_held_are_not_written_over(
    opened: Opener, run: Scenario, segments: Files, ending: str
) -> None:
    async def main() -> None:
        async with opened() as writer, opened() as reader:
            lease = await writer.lease.grant(60)
            await writer.kv.put("key", b"a" * MIB, lease)
            holder = await held(reader.kv, "key")
            if ending == "delete":
                await writer.kv.delete("key")
            elif ending == "replace":
                await writer.kv.put("key", b"b" * MIB)
            else:
                await writer.lease.revoke(lease)
            for number in range(4):
                await writer.kv.put(f"other-{number}", b"c" * MIB)
            part = holder.data[MIB // 2 :]
            holder.release()
            await writer.kv.put("another", b"d" * MIB)
            assert part == b"a" * (MIB // 2), "a slice keeps the segment, too"
            count = len(segments())
            del part
            await writer.kv.put("last", b"e" * MIB)
            assert len(segments()) == count, "let go of, it is used again"

    run(main())


def test_kv_a_full_store_says_so_and_recovers(opened: Opener, run: Scenario) -> None:
    async def main() -> None:
        async with opened(max_bytes=4 * MIB) as stores:
            for number in range(4):
                await stores.kv.put(str(number), bytes(MIB))
            with pytest.raises(KVError, match=r"is full: 4194304 of 4194304 .* '4' needs 1048576; raise max_bytes"):
                await stores.kv.put("4", bytes(MIB))
            assert await stores.kv.keys() == ["0", "1", "2", "3"]
            await stores.kv.delete("0")
            await stores.kv.put("4", bytes(MIB))

    run(main())


def test_kv_what_readers_hold_counts(opened: Opener, run: Scenario) -> None:
    async def main() -> None:
        async with opened(max_bytes=2 * MIB) as stores:
            await stores.kv.put("key", bytes(2 * MIB))
            holder = await held(stores.kv, "key")
            await stores.kv.delete("key")
            with pytest.raises(KVError, match="what readers hold"):
                await stores.kv.put("key", bytes(MIB))
            holder.release()
            await stores.kv.put("key", bytes(MIB))

    run(main())


def test_kv_a_put_takes_what_a_dead_writer_had(opened: Opener, run: Scenario) -> None:
    async def main() -> None:
        async with opened(max_bytes=MIB) as stores:
            kv: Any = stores.kv
            _, descriptor = await kv._store.transact(lambda work: kv._segments.reserve(work, "lost", MIB))
            with pytest.raises(KVError, match="is full"):
                await kv.put("key", bytes(MIB))
            os.close(descriptor)
            await kv.put("key", bytes(MIB))

    run(main())


def test_kv_the_pool_makes_room_for_other_sizes(opened: Opener, run: Scenario, segments: Files) -> None:
    async def main() -> None:
        async with opened(max_bytes=4 * MIB) as stores:
            for size in (4 * MIB, MIB // 4, 3 * MIB, 1000, 2 * MIB):
                await stores.kv.put("key", bytes(size))
                await stores.kv.delete("key")
                assert sum(segments().values()) <= 4 * MIB

    run(main())


def test_kv_idle_segments_are_given_back(opened: Opener, run: Scenario, segments: Files, clock: ManualClock) -> None:
    async def main() -> None:
        async with opened(idle=60) as first:
            await first.kv.put("key", bytes(MIB))
            await first.kv.put("kept", bytes(MIB))
            await first.kv.delete("key")
            clock.advance(59)
            async with opened(idle=60):
                assert len(segments()) == 2
            clock.advance(2)
            async with opened(idle=60):
                assert len(segments()) == 1, "whoever comes next gives back"

    run(main())


def test_kv_the_last_one_gives_the_pool_back_and_leaves_the_values(
    opened: Opener, run: Scenario, segments: Files
) -> None:
    async def main() -> None:
        async with opened() as last:
            async with opened() as first:
                await first.kv.put("key", b"value" * 1000)
                await first.kv.put("dropped", bytes(MIB))
                await first.kv.delete("dropped")
            assert len(segments()) == 2, "others are there"
            assert await last.kv.exists("key")
        assert len(segments()) == 1
        async with opened() as later:
            assert bytes((await held(later.kv, "key")).data) == b"value" * 1000

    run(main())
