from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stagewire.testing import Leak, no_leaks, no_task_leaks


def test_what_is_cleaned_up_is_no_leak() -> None:
    with no_leaks(grace=5):
        thread = threading.Thread(target=lambda: None)
        thread.start()
        left, right = socket.socketpair()
        left.close()
        right.close()
        asyncio.run(asyncio.sleep(0))
        del thread


def test_a_thread_on_its_way_out_is_waited_for() -> None:
    gate = threading.Event()
    threading.Timer(0.05, gate.set).start()
    with no_leaks(grace=5):
        threading.Thread(target=gate.wait).start()


def test_a_thread_that_stays_is_a_leak() -> None:
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait, name="forgotten", daemon=True)
    with pytest.raises(Leak, match=r"1 threads left behind:\n  .*forgotten"), no_leaks(grace=0.05):
        thread.start()
    gate.set()
    thread.join(10)


def test_an_open_descriptor_is_a_leak() -> None:
    ends: list[socket.socket] = []
    with pytest.raises(Leak, match=r"(?s)2 descriptors left behind:.*socket"), no_leaks(grace=0.05):
        ends += socket.socketpair()
    for end in ends:
        end.close()
    opened: list[int] = []
    with pytest.raises(Leak, match=r"pytest|test_leaks"), no_leaks(grace=0.05):
        opened.append(os.open(__file__, os.O_RDONLY))
    os.close(opened[0])


def test_what_asyncio_reports_is_a_leak() -> None:
    async def forget() -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(ValueError("unseen"))

    with pytest.raises(Leak, match="1 errors left behind:\n  Future exception was never retrieved"), no_leaks(grace=0):
        asyncio.run(forget())


def test_a_block_that_raises_keeps_its_error() -> None:
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait, daemon=True)

    def fail() -> None:
        thread.start()
        raise KeyError("own")

    with pytest.raises(KeyError, match="own"), no_leaks(grace=0):
        fail()
    gate.set()
    thread.join(10)


def test_a_task_that_stays_is_a_leak_and_is_cancelled() -> None:
    async def main() -> None:
        ended = asyncio.Event()

        async def forgotten() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.set()

        tasks: list[asyncio.Task[None]] = []

        async def leak() -> None:
            async with no_task_leaks():
                tasks.append(asyncio.create_task(forgotten()))
                await asyncio.sleep(0)

        with pytest.raises(Leak, match=r"1 tasks left behind:\n  .*forgotten"):
            await leak()
        assert ended.is_set()

    asyncio.run(main())


def test_tasks_that_end_and_those_from_before_are_no_leak() -> None:
    async def main() -> None:
        before = asyncio.create_task(asyncio.sleep(3600))
        async with no_task_leaks():
            ending = asyncio.create_task(asyncio.sleep(3600))
            await asyncio.sleep(0)
            ending.cancel()
        before.cancel()

    asyncio.run(main())


CONFTEST = 'pytest_plugins = ["stagewire.testing.pytest_plugin"]'
LEAKING = """
import socket
kept = []
def test_leaks(no_leaks):
    kept.append(socket.socket())
def test_does_not(no_leaks):
    socket.socket().close()
"""


def test_the_pytest_fixture_fails_the_test_that_leaks(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(LEAKING)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "2 passed, 1 error" in run.stdout
    assert "1 descriptors left behind" in run.stdout
