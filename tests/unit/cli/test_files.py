"""The input stream by itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from stagewire import StagewireError
from stagewire.cli.files import FileInput, open_input


@pytest.fixture
def pipe() -> Iterator[tuple[FileInput, int]]:
    reading, writing = os.pipe()
    with FileInput(reading, "a pipe", block=4) as stream:
        yield stream, writing
    with contextlib.suppress(OSError):  # the test may have closed it
        os.close(writing)


async def blocks_of(stream: FileInput) -> list[bytes]:
    return [block async for block in stream]


def test_a_file_is_read_in_blocks_and_its_size_is_known(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"0123456789")
    with FileInput(os.open(tmp_path / "in", os.O_RDONLY), "in", block=4) as stream:
        assert (stream.name, stream.size) == ("in", 10)
        assert asyncio.run(blocks_of(stream)) == [b"0123", b"4567", b"89"]


def test_an_empty_file_has_no_block(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    with open_input(str(tmp_path / "in")) as stream:
        assert stream.size == 0
        assert asyncio.run(blocks_of(stream)) == []


def test_the_null_device_can_be_read() -> None:
    with open_input("/dev/null") as stream:
        assert stream.size is None
        assert asyncio.run(blocks_of(stream)) == []


def test_a_pipe_has_no_size_and_ends_with_its_writer(pipe: tuple[FileInput, int]) -> None:
    stream, writing = pipe
    os.write(writing, b"abcdef")
    os.close(writing)
    assert stream.size is None
    assert asyncio.run(blocks_of(stream)) == [b"abcd", b"ef"]


def test_nothing_is_read_before_it_is_asked_for(pipe: tuple[FileInput, int]) -> None:
    stream, writing = pipe
    os.write(writing, b"abcdefgh")

    async def main() -> None:
        iterator = aiter(stream)
        assert await anext(iterator) == b"abcd"
        await asyncio.sleep(0.01)
        assert os.read(stream._fd, 10) == b"efgh"  # still in the pipe

    asyncio.run(main())


def test_the_event_loop_runs_on_while_a_read_waits(pipe: tuple[FileInput, int]) -> None:
    stream, writing = pipe

    async def main() -> bytes:
        read = asyncio.ensure_future(anext(aiter(stream)))
        await asyncio.sleep(0.01)
        assert not read.done()
        os.write(writing, b"late")
        return await read

    assert asyncio.run(main()) == b"late"


def test_cancelling_ends_a_read_of_a_silent_pipe_and_its_thread(pipe: tuple[FileInput, int]) -> None:
    stream, _writing = pipe

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(aiter(stream))

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name.startswith("input"):
            stream._reader.shutdown(wait=True)
            assert not thread.is_alive()


def test_a_descriptor_that_does_not_block_is_waited_for(pipe: tuple[FileInput, int]) -> None:
    stream, writing = pipe
    os.set_blocking(stream._fd, False)

    async def main() -> bytes:
        read = asyncio.ensure_future(anext(aiter(stream)))
        await asyncio.sleep(0.01)
        os.write(writing, b"late")
        return await read

    assert asyncio.run(main()) == b"late"


def test_it_is_read_once(pipe: tuple[FileInput, int]) -> None:
    stream, writing = pipe
    os.close(writing)

    async def main() -> None:
        assert await blocks_of(stream) == []
        with pytest.raises(RuntimeError, match="a pipe was read already"):
            await blocks_of(stream)

    asyncio.run(main())


def test_a_read_that_fails_names_the_input(tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    with (
        FileInput(os.open(tmp_path / "in", os.O_WRONLY), "in") as stream,
        pytest.raises(StagewireError, match="in cannot be read on: Bad file descriptor"),
    ):
        asyncio.run(blocks_of(stream))


def test_nothing_is_left_open_after_a_refusal(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(click.BadParameter):
            open_input(str(path))
    with open_input("/dev/null"):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_it_knows_the_file_that_it_reads_by_every_name(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.touch()
    (tmp_path / "soft").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    (tmp_path / "copy").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with open_input(str(file)) as stream:
        assert all(stream.is_same_file(tmp_path / name) for name in ("in", "soft", "hard"))
        assert not any(stream.is_same_file(tmp_path / name) for name in ("copy", "dangling", "missing", "in/below"))


def test_a_device_may_be_input_and_output() -> None:
    with open_input("/dev/null") as stream:
        assert not stream.is_same_file(Path("/dev/null"))
