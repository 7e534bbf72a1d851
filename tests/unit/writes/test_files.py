"""What ends up on the disk: small puts, commit modes, integrity, bad input."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stagewire.testing import Fault
from stagewire_writes import ExportOptions, SessionOptions, WriteError
from stagewire_writes.checksums import ObjectChecksum, checksum, combine
from stagewire_writes.errors import (
    AccessDenied,
    ChecksumMismatch,
    DiskFull,
    FileTooLarge,
    IsDirectory,
    NotDirectory,
    NotFound,
    PathRefused,
    PayloadTooLarge,
    from_os,
)
from stagewire_writes.export import Export
from stagewire_writes.protocol import SmallPut, Written

if TYPE_CHECKING:
    from tests.unit.writes.conftest import Play, World

DATA = os.urandom(1_000)
MIB = 1024 * 1024


async def small_put(world: World, path: str, data: bytes) -> Any:
    return await world.controller.put_small("data", path, data)


def test_ws13_a_small_put_writes_a_whole_file_and_its_parents(play: Play) -> None:
    async def story(world: World) -> None:
        (world.root / "a").mkdir(mode=0o700)
        os.umask(0o077)
        written = await small_put(world, "a/b/c.bin", b"fifteen bytes!!")
        assert (world.read("a/b/c.bin"), written.size) == (b"fifteen bytes!!", 15)
        assert stat.S_IMODE((world.root / "a").stat().st_mode) == 0o700
        assert stat.S_IMODE((world.root / "a/b").stat().st_mode) == 0o755
        await small_put(world, "a/b/c.bin", b"")
        assert world.read("a/b/c.bin") == b""

    old = os.umask(0o022)
    try:
        play(story)
    finally:
        os.umask(old)


def test_ws13_the_limit_itself_is_refused_on_both_sides(play: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(PayloadTooLarge, match="16 bytes; from 16 on"):
            await small_put(world, "x", b"x" * 16)
        node = await world.controller.nodes.choose("data")
        head = SmallPut("x", checksum(b"x" * 16))
        with pytest.raises(PayloadTooLarge):
            await world.remote.call(node, "small-put", head, Written, timeout=10, data=[memoryview(b"x" * 16)])
        assert world.files() == []

    play(story)


def test_ws13_exactly_4_mib_is_refused_and_one_byte_less_is_not(play: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(PayloadTooLarge):
            await small_put(world, "x", bytes(4 * MIB))
        assert (await small_put(world, "x", bytes(4 * MIB - 1))).size == 4 * MIB - 1

    play(story, small_put=SessionOptions().small_put)


@pytest.mark.parametrize("how", ["abort", "failed write", "failed finalize", "agent closed"])
def test_ws17_in_atomic_mode_a_session_that_does_not_finish_leaves_the_old_file(play: Play, how: str) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA)
        if how == "abort":
            await session.wait()
            await session.abort()
        elif how == "agent closed":
            await session.wait()
            await world.agent.close()
        else:
            (held,) = world.agent.sessions._sessions.values()
            name = "write" if how == "failed write" else "commit"

            def full(*_args: Any) -> None:
                raise from_os(OSError(28, "No space left"), "x")

            setattr(held._file, name, full)
            with pytest.raises(DiskFull, match="free some space"):
                await session.finalize()
        assert world.read("x") == b"old"
        assert world.files() == ["x"]

    play(story)


def test_ws17_the_new_file_has_the_mode_of_the_old_one(play: Play) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")
        (world.root / "x").chmod(0o640)
        await world.put("x", DATA)
        assert stat.S_IMODE((world.root / "x").stat().st_mode) == 0o640

    play(story)


def test_ws17_in_place_writes_the_file_itself(play: Play) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old and longer" * 200)
        inode = (world.root / "x").stat().st_ino
        await world.put("x", DATA)
        assert (world.read("x"), (world.root / "x").stat().st_ino) == (DATA, inode)
        await small_put(world, "x", b"small")
        assert (world.read("x"), (world.root / "x").stat().st_ino) == (b"small", inode)

    play(story, export={"mode": "in_place"})


@pytest.mark.parametrize(("fsync", "calls"), [("never", 0), ("finalize", 2)])
def test_ws17_fsync_only_when_configured(play: Play, monkeypatch: Any, fsync: str, calls: int) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    async def story(world: World) -> None:
        await world.put("x", DATA)
        assert len(synced) == calls
        await small_put(world, "y", b"small")
        assert len(synced) == 2 * calls

    play(story, export={"fsync": fsync})


def test_ws18_checksums_of_objects_come_from_those_of_their_frames() -> None:
    first, second, third = DATA[:300], DATA[300:301], DATA[301:]
    assert combine(checksum(first), checksum(second + third), 700) == checksum(DATA)
    whole = ObjectChecksum()
    for number, frame in ((2, third), (0, first), (0, first), (1, second)):
        whole.add(number, checksum(frame), len(frame))
    assert (whole.value, whole.frames) == (checksum(DATA), 3)


def test_ws18_a_flipped_byte_is_found_named_and_retried(play: Play, monkeypatch: Any) -> None:
    """Raw, where there is no other way to fall back to."""

    async def story(world: World) -> None:
        found: list[str] = []
        real = world.batches.request
        flips = 2

        async def flipping(mailbox: str, message: Any, *, timeout: float) -> Any:
            nonlocal flips
            if message.payload["op"] == "raw" and flips:
                flips -= 1
                changed = bytearray(message.payload["data"][0])
                changed[3] ^= 0x10
                message = type(message)({**message.payload, "data": [memoryview(changed)]}, message.headers)
            reply = await real(mailbox, message, timeout=timeout)
            found.append(reply.payload.get("text", ""))
            return reply

        monkeypatch.setattr(world.batches, "request", flipping)
        await world.put("x", DATA)
        assert world.read("x") == DATA
        assert sum("(8 bytes) changed on its way" in text for text in found) == 2

    play(story, payload="raw")


def test_ws18_a_byte_that_flips_every_time_ends_the_session(play: Play, monkeypatch: Any) -> None:
    async def story(world: World) -> None:
        monkeypatch.setattr("stagewire_writes.sending.checksums", lambda frames: [1 for _frame in frames])
        with pytest.raises(ChecksumMismatch, match="frame 0"):
            await world.put("x", DATA[:8])
        assert world.files() == []

    play(story)


def test_ws18_the_whole_is_verified_before_it_gets_its_name(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA)
        await session.wait()
        session._session.checksum.value ^= 1
        with pytest.raises(ChecksumMismatch, match="nothing was kept"):
            await session.finalize()
        assert world.files() == []

    play(story)


def test_ws18_a_small_put_is_verified(play: Play) -> None:
    async def story(world: World) -> None:
        node = await world.controller.nodes.choose("data")
        with pytest.raises(ChecksumMismatch):
            await world.remote.call(node, "small-put", SmallPut("x", 1), Written, timeout=9, data=[memoryview(b"hi")])
        assert world.files() == []

    play(story)


WAYS: dict[str, Callable[[World, str], Coroutine[Any, Any, object]]] = {
    "session": lambda world, path: world.controller.open_session("data", path),
    "small put": lambda world, path: small_put(world, path, b"x"),
    "read": lambda world, path: world.controller.read_at("data", path, 0, 10),
    "list": lambda world, path: world.controller.list("data", path),
    "stat": lambda world, path: world.controller.stat("data", path),
    "remove": lambda world, path: world.controller.remove("data", path),
}

HOSTILE = [
    "", "/", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/", "./x", "a/./b", "x\0y", "\0", ".stagewire/x",
    "n" * 256, "d/" * 2_100 + "x", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: ascii(path[:20]))
@pytest.mark.parametrize("way", ["session", "small put", "read", "remove", "stat"])
def test_s312_no_path_leaves_the_export(play: Play, path: str, way: str) -> None:
    async def story(world: World) -> None:
        if way == "stat" and path in ("", "/"):
            return
        with pytest.raises(PathRefused):
            await WAYS[way](world, path)
        assert world.files() == []

    play(story)


@pytest.mark.parametrize("way", ["session", "small put", "read", "list"])
def test_s312_no_symbolic_link_is_followed(play: Play, tmp_path: Path, way: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")

    async def story(world: World) -> None:
        (world.root / "link").symlink_to(outside)
        (world.root / "file").symlink_to(outside / "secret")
        with pytest.raises(PathRefused, match="symbolic link"):
            await WAYS[way](world, "file" if way == "read" else "link" if way == "list" else "link/new")
        await small_put(world, "file", b"new")
        assert not (world.root / "file").is_symlink()

    play(story)
    assert [each.name for each in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"


@pytest.mark.parametrize("way", ["session", "small put"])
@pytest.mark.parametrize(
    ("path", "error"),
    [("directory", IsDirectory), ("file/below", NotDirectory), ("file/below/that", NotDirectory)],
)
def test_bad_input_what_is_in_the_way_is_named(play: Play, way: str, path: str, error: type[WriteError]) -> None:
    async def story(world: World) -> None:
        (world.root / "directory").mkdir()
        (world.root / "file").write_bytes(b"old")
        with pytest.raises(error, match=path.split("/", maxsplit=1)[0]):
            await WAYS[way](world, path)
        assert world.files() == ["file"]

    play(story)


def test_bad_input_parents_are_made_only_when_asked_for(play: Play) -> None:
    async def story(world: World) -> None:
        with pytest.raises(NotFound):
            await world.controller.open_session("data", "a/b", create_parents=False)
        with pytest.raises(NotFound):
            await world.controller.put_small("data", "a/b", b"x", create_parents=False)
        assert list(world.root.iterdir()) == [world.root / ".stagewire"]

    play(story)


def test_bad_input_a_session_that_does_not_finish_leaves_no_new_directory(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "a/b/c")
        await session.submit(0, DATA)
        await session.wait()
        await session.abort()
        assert list(world.root.iterdir()) == [world.root / ".stagewire"]

    play(story)


@pytest.mark.parametrize("allow", [{"read"}, {"write"}, set()])
def test_ws8_an_export_allows_what_it_says(play: Play, allow: set[str]) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")
        for permission, attempt in (
            ("write", lambda: world.controller.open_session("data", "y")),
            ("write", lambda: small_put(world, "y", b"x")),
            ("read", lambda: world.controller.stat("data", "x")),
            ("delete", lambda: world.controller.remove("data", "x")),
        ):
            if permission not in allow:
                with pytest.raises(AccessDenied, match=f"does not allow to {permission}"):
                    await attempt()
        assert world.read("x") == b"old"

    play(story, export={"allow": allow})


def test_bad_input_permission_denied_by_the_file_system_is_named(play: Play, monkeypatch: Any) -> None:
    """The check asks the system, which lets the superuser do everything; so its answer is given here."""
    monkeypatch.setattr(os, "access", lambda *_args, **_options: False)

    async def story(world: World) -> None:
        with pytest.raises(AccessDenied, match="no permission; change the mode or the owner"):
            await world.controller.open_session("data", "x")
        assert world.files() == []

    play(story)


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize("mode", ["atomic", "in_place"])
def test_bad_input_a_file_that_outgrows_its_limit_is_named_and_nothing_is_left(play: Play, mode: str) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA)
        with file_limit(500), pytest.raises(FileTooLarge, match="'x'"):
            await session.finalize()
        if mode == "atomic":
            assert world.read("x") == b"old"
        assert world.files() == ["x"]
        await world.put("x", DATA)

    play(story, export={"mode": mode})


def test_bad_input_disk_full_is_named(play: Play, monkeypatch: Any) -> None:
    def full(*_args: Any) -> int:
        raise OSError(28, "No space left on device")

    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            with pytest.raises(DiskFull, match="file system is full; free some space"):
                await world.put("x", DATA)
            with pytest.raises(DiskFull):
                await small_put(world, "x", b"small")
        assert (world.read("x"), world.files()) == (b"old", ["x"])
        await world.put("x", DATA)

    play(story)


def test_ws19_what_a_killed_agent_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """Only what nobody holds, and only once it is old."""
    export = Export("data", ExportOptions(root=tmp_path))
    held = export.open_session("held", create_parents=True)
    orphan = tmp_path / ".stagewire" / ("0" * 32 + ".part")
    orphan.write_bytes(b"left behind")

    assert export.reap(60) == 0
    assert export.reap(-1) == 1
    assert not orphan.exists()
    held.write(memoryview(DATA), 0)
    held.commit(1_000)
    assert (tmp_path / "held").read_bytes() == DATA
    export.close()


def test_reads_lists_and_removes(play: Play) -> None:
    async def story(world: World) -> None:
        controller = world.controller
        for number in range(25):
            await small_put(world, f"d/{number:02}", bytes(number % 15))
        first = await controller.list("data", "d", limit=10)
        rest = await controller.list("data", "d", after=first.entries[-1].name)
        assert [entry.name for entry in [*first.entries, *rest.entries]] == [f"{number:02}" for number in range(25)]
        assert (first.more, rest.more) == (True, False)
        assert [entry.name for entry in (await controller.list("data")).entries] == ["d"]
        with pytest.raises(WriteError, match="not empty"):
            await controller.remove("data", "d")
        await controller.rename("data", "d/14", "e/moved")
        assert (await controller.stat("data", "e/moved")).size == 14
        written = await controller.concatenate("data", "all", ["d/03", "e/moved", "d/00"])
        assert (written.size, world.read("all")) == (17, bytes(17))
        await controller.remove("data", "all")
        with pytest.raises(NotFound):
            await controller.stat("data", "all")

    play(story)


def test_ws3_a_put_whose_answer_is_lost_is_said_to_be_uncertain(play: Play) -> None:
    async def story(world: World) -> None:
        await small_put(world, "x", b"old")
        world.plan.add(Fault.FAIL_AFTER, on="request", when=lambda name: str(name).endswith("control"))
        with pytest.raises(WriteError, match="does not answer"):
            await small_put(world, "x", b"new")
        assert world.read("x") in (b"old", b"new")

    play(story)
