"""Fails what leaves something behind: tasks, threads, file descriptors, errors that nobody retrieved.

As context managers here, and as the pytest fixture ``no_leaks`` in `stagewire.testing.pytest_plugin`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

GRACE = 2.0
"""Seconds that threads and descriptors which are on their way out may still take."""

_DESCRIPTORS = Path("/proc/self/fd")


class Leak(AssertionError):
    """Something was left behind; the message lists it."""


@asynccontextmanager
async def no_task_leaks() -> AsyncIterator[None]:
    """Raise `Leak` when tasks that began inside the block are still there after it; they are cancelled then.

    Tasks that were told to end get a few turns of the loop for it.
    """
    before = asyncio.all_tasks()
    yield
    for _ in range(10):
        if not asyncio.all_tasks() - before:
            return
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - before
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    raise Leak(_listing("tasks", [repr(task) for task in left]))


@contextmanager
def no_leaks(*, grace: float = GRACE) -> Iterator[None]:
    """Raise `Leak` when the block leaves threads or file descriptors, or asyncio reported an error inside it.

    What asyncio reports are tasks destroyed while pending, exceptions never retrieved, callbacks that raised.
    Descriptors are compared where ``/proc`` has them, which includes sockets and pipes. A block that raised keeps its
    own error.
    """
    threads, descriptors = set(threading.enumerate()), _descriptors()
    with _asyncio_reports() as reports:
        yield
        gc.collect()
    left = _after(grace, lambda: [str(thread) for thread in threading.enumerate() if thread not in threads])
    kept = _after(grace, lambda: [text for number, text in _descriptors().items() if descriptors.get(number) != text])
    parts = [_listing(what, found) for what, found in (("threads", left), ("descriptors", kept), ("errors", reports))]
    if any(parts):
        raise Leak("\n".join(part for part in parts if part))


def _after(grace: float, find: Callable[[], list[str]]) -> list[str]:
    """Return what is still found after up to ``grace`` seconds."""
    deadline = time.monotonic() + grace
    while (found := find()) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    return found


def _listing(what: str, found: list[str]) -> str:
    return "\n  ".join([f"{len(found)} {what} left behind:", *sorted(found)]) if found else ""


def _descriptors() -> dict[str, str]:
    found: dict[str, str] = {}
    if _DESCRIPTORS.is_dir():
        for entry in _DESCRIPTORS.iterdir():
            try:
                found[entry.name] = f"{entry.name} -> {entry.readlink()}"
            except OSError:
                continue  # the one that listed them
    return found


@contextmanager
def _asyncio_reports() -> Iterator[list[str]]:
    reports: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reports.append(record.getMessage())

    handler = Collector(logging.ERROR)
    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)
    try:
        yield reports
    finally:
        logger.removeHandler(handler)
