"""Writers that do not know the size, readers piece by piece, and files for code that knows files."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.writes.conftest import world_of

from stagewire_writes import HybridWriter, RemoteFile
from stagewire_writes.errors import FileChanged, NotFound, SessionEnded, WriteError

if TYPE_CHECKING:
    from tests.unit.writes.conftest import Play, World

DATA = os.urandom(1_000)


async def write(world: World, data: bytes, step: int, **options: Any) -> HybridWriter:
    writer = HybridWriter(world.controller, "data", "a/x", **options)
    for at in range(0, len(data), step):
        await writer.write(data[at : at + step])
    assert (await writer.finish()).size == len(data)
    assert world.read("a/x") == data
    return writer


@pytest.mark.parametrize("step", [1, 7, 16, 40, 1_000])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 31, 32, 33, 1_000])
def test_s31_less_than_the_limit_is_one_small_put_and_the_limit_is_a_session(play: Play, size: int, step: int) -> None:
    async def story(world: World) -> None:
        writer = await write(world, DATA[:size], step)
        assert (writer.session is not None) == (size >= 16)

    play(story)


@pytest.mark.parametrize("capabilities", [[], ["write-session"], ["small-put"]], ids=str)
@pytest.mark.parametrize("size", [0, 15, 1_000])
def test_s31_what_an_agent_cannot_do_is_done_without(play: Play, capabilities: list[str], size: int) -> None:
    async def story(world: World) -> None:
        (world.root / "a").mkdir()
        (world.root / "a/x").write_bytes(b"longer" * 1_000)
        world.controller.capabilities = frozenset(capabilities)
        writer = await write(world, DATA[:size], 100)
        assert (writer.session is not None) == (size >= 16 and "write-session" in capabilities)

    play(story)


def test_ws11_a_writer_that_fails_gives_the_file_up(play: Play) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")
        writer = HybridWriter(world.controller, "data", "x")
        await writer.write(DATA)
        assert writer.session is not None
        writer.session._session.fail(WriteError("broken"))
        with pytest.raises(WriteError, match="broken"):
            await writer.write(DATA)
        with pytest.raises(SessionEnded):
            await writer.finish()
        assert (world.read("x"), len(world.agent.sessions)) == (b"old", 0)

    play(story)


def test_s35_who_caches_is_told_of_the_file_and_every_parent(play: Play) -> None:
    async def story(world: World) -> None:
        told: list[str] = []
        end = world.controller.changes.subscribe(lambda export, path: told.append(f"{export}:{path}"))
        await world.controller.put_small("data", "a/b/c", b"x")
        assert told == ["data:a/b/c", "data:a/b", "data:a", "data:"]
        told.clear()
        await world.put("a/d", DATA)
        assert told == ["data:a/d", "data:a", "data:"]
        end()
        await world.controller.remove("data", "a/d")
        assert told == ["data:a/d", "data:a", "data:"]

    play(story)


def reads(world: World, **options: Any) -> None:
    """Set how the controller reads."""
    world.controller.pieces._options = world.options.reads.model_copy(update=options)
    world.controller.pieces.cache._limit = options.get("cache", 0)


async def collect(world: World, start: int = 0, stop: int | None = None) -> bytes:
    entry = await world.controller.stat("data", "x")
    async with world.controller.pieces.stream("data", "x", entry, start, stop) as pieces:
        return b"".join([bytes(piece) async for piece in pieces])


@pytest.mark.parametrize(("start", "stop"), [(0, None), (0, 0), (5, 6), (10, 20), (99, 301), (990, 1_000)])
def test_s33_pieces_come_in_order_whatever_their_number(play: Play, start: int, stop: int | None) -> None:
    async def story(world: World) -> None:
        reads(world, piece=10, inflight=3)
        await world.put("x", DATA)
        assert await collect(world, start, stop) == DATA[start:stop]

    play(story)


def test_s33_a_window_of_pieces_is_on_its_way_and_refilled_one_by_one(play: Play) -> None:
    async def story(world: World) -> None:
        reads(world, piece=10, inflight=3)
        await world.put("x", DATA)
        asked: list[int] = []
        most = under_way = 0
        real = world.controller.read_at

        async def slow(export: str, path: str, offset: int, length: int, version: str = "") -> Any:
            nonlocal most, under_way
            asked.append(offset // 10)
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(5 if offset == 0 else 1)
            under_way -= 1
            return await real(export, path, offset, length, version)

        world.controller.read_at = slow  # type: ignore[method-assign]
        entry = await world.controller.stat("data", "x")
        async with world.controller.pieces.stream("data", "x", entry) as pieces:
            first = await anext(pieces)
            assert (bytes(first), asked) == (DATA[:10], [0, 1, 2])
            await asyncio.sleep(0)
            assert asked == [0, 1, 2, 3]
            assert bytes(await anext(pieces)) == DATA[10:20]
        assert most == 3
        assert under_way <= 3

    play(story)


def test_s33_a_hit_is_served_from_the_store_and_a_miss_fills_it(play: Play) -> None:
    async def story(world: World) -> None:
        reads(world, piece=400, inflight=1, cache=10_000)
        await world.put("x", DATA)
        assert await collect(world) == DATA
        await asyncio.sleep(1)
        cache = world.controller.pieces.cache
        assert (cache.hits, cache.misses) == (0, 3)

        async def refuse(*_args: Any, **_options: Any) -> Any:
            raise AssertionError("asked an agent")

        world.controller.read_at = refuse  # type: ignore[method-assign]
        assert await collect(world) == DATA
        assert cache.hits == 3

    play(story)


@pytest.mark.parametrize(
    "damage",
    [lambda value: value[:-1], lambda value: value + b"x", lambda value: b"\0" + value[1:], lambda _value: b""],
    ids=["cut", "trailing", "changed", "empty"],
)
def test_s34_a_damaged_value_is_a_miss(play: Play, damage: Callable[[bytes], bytes]) -> None:
    async def story(world: World) -> None:
        reads(world, piece=1_000, inflight=1, cache=10_000)
        await world.put("x", DATA)
        await collect(world)
        await asyncio.sleep(1)
        (key,) = await world.kv.keys("piece-")
        holder = await world.kv.get(key)
        assert holder is not None
        await world.kv.put(key, damage(bytes(holder.data)))
        assert await collect(world) == DATA

    play(story)


def test_s33_s35_the_cache_is_bounded_and_follows_changes(play: Play) -> None:
    async def story(world: World) -> None:
        reads(world, piece=100, inflight=1, cache=300)
        await world.put("x", DATA)
        await collect(world)
        await asyncio.sleep(1)
        assert len(await world.kv.keys("piece-")) == 3
        await world.put("x", DATA[::-1])
        await asyncio.sleep(1)
        assert await world.kv.keys("piece-") == []
        assert await collect(world) == DATA[::-1]

    play(story)


def test_s314_a_read_never_mixes_two_versions(play: Play) -> None:
    async def story(world: World) -> None:
        reads(world, piece=100, inflight=1)
        await world.put("x", DATA)
        entry = await world.controller.stat("data", "x")
        async with world.controller.pieces.stream("data", "x", entry) as pieces:
            await anext(pieces)
            await world.put("x", DATA[::-1])
            with pytest.raises(FileChanged):
                [piece async for piece in pieces]

    play(story)


class Files:
    """Runs a world's loop here, and code that blocks in another thread."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, code: Callable[[Callable[..., RemoteFile]], None]) -> None:
        async def main() -> None:
            async with world_of(self.root) as world:
                loop = asyncio.get_running_loop()
                await asyncio.to_thread(
                    code, lambda path, mode="rb": RemoteFile(world.controller, loop, "data", path, mode)
                )

        asyncio.run(main())


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "export")


def test_ws16_a_file_is_written_and_read_as_files_are(files: Files) -> None:
    def code(remote: Callable[..., RemoteFile]) -> None:
        with remote("a/x", "wb") as file:
            shutil.copyfileobj(io.BytesIO(DATA), file, 100)
            assert (file.tell(), file.writable(), file.readable()) == (1_000, True, False)
        with remote("a/x") as file:
            assert file.read() == DATA
            assert file.seek(-10, os.SEEK_END) == 990
            assert (file.read(4), file.tell()) == (DATA[990:994], 994)
            assert file.seek(3) == 3
            assert io.BufferedReader(file).read(7) == DATA[3:10]

    files.run(code)


def test_ws16_close_is_finalize_and_its_error_is_raised_after_an_abort(files: Files) -> None:
    def code(remote: Callable[..., RemoteFile]) -> None:
        file = remote("x", "wb")
        file.write(DATA)
        assert file._writer is not None
        assert file._writer.session is not None
        file._loop.call_soon_threadsafe(file._writer.session._session.fail, WriteError("the original"))
        with pytest.raises(WriteError, match="the original"):
            file.close()
        assert file.closed
        with pytest.raises(NotFound):
            remote("x")

    files.run(code)


def fail(file: RemoteFile) -> None:
    file.write(DATA)
    raise ValueError("mine")


def test_ws16_an_exception_in_the_block_leaves_the_old_file(files: Files) -> None:
    def code(remote: Callable[..., RemoteFile]) -> None:
        with remote("x", "wb") as file:
            file.write(b"old")
        with pytest.raises(ValueError, match="mine"), remote("x", "wb") as file:
            fail(file)
        with remote("x") as file:
            assert file.read() == b"old"

    files.run(code)


def test_ws16_a_file_that_was_not_closed_is_given_up(files: Files) -> None:
    def code(remote: Callable[..., RemoteFile]) -> None:
        file = remote("x", "wb")
        file.write(DATA)
        with pytest.warns(ResourceWarning, match="not closed: it is given up"):
            file.__del__()
        assert file.closed
        with pytest.raises(NotFound):
            remote("x")

    files.run(code)


def test_ws16_misuse_is_named(files: Files) -> None:
    def code(remote: Callable[..., RemoteFile]) -> None:
        with pytest.raises(ValueError, match="'rb' or 'wb'"):
            remote("x", "a")
        with remote("x", "wb") as file:
            with pytest.raises(io.UnsupportedOperation):
                file.read()
            with pytest.raises(io.UnsupportedOperation):
                file.seek(0)
        with remote("x") as file, pytest.raises(io.UnsupportedOperation):
            file.write(b"x")
        with pytest.raises(ValueError, match="closed"):
            file.read()

    files.run(code)


def test_ws16_the_loops_own_thread_is_refused(play: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(RuntimeError, match="another thread"):
            RemoteFile(world.controller, asyncio.get_running_loop(), "data", "x")

    play(story)
