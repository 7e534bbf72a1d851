"""A store that is open: its directory, its index, and the threads that work on them beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from stagewire import Clock, Closed
from stagewire_shm.directory import locate, prepare
from stagewire_shm.index import Index, Transaction
from stagewire_shm.locks import GivenUp
from stagewire_shm.options import ShmOptions

T = TypeVar("T")
_AT_ONCE = threading.Event()
_AT_ONCE.set()


class Store:
    """One backend's access to a store. Belongs to one event loop; its jobs run in threads."""

    def __init__(self, options: ShmOptions, clock: Clock, threads: int = 1) -> None:
        self.place = locate(options)
        self.index = Index(self.place, options.timeout, clock)
        self._threads = threads
        self._executor: ThreadPoolExecutor | None = None
        self._jobs: set[asyncio.Future[Any]] = set()

    async def open(self) -> None:
        """Make the store, or open the one that is there. Raises `KVError`."""
        self._executor = ThreadPoolExecutor(self._threads, thread_name_prefix="stagewire-shm")
        try:
            prepare(self.place)
            await self.run(self.index.open)
        except BaseException:
            await self.close()
            raise

    async def run(self, job: Callable[[threading.Event], T]) -> T:
        """Run a job in a thread. Cancelled, it tells the job to give up, and ends when the job has ended.

        Raises:
            Closed: Not open, or closed.
        """
        if self._executor is None:
            raise Closed("the backend is not open (or was closed)")
        stop = threading.Event()
        future = asyncio.get_running_loop().run_in_executor(self._executor, job, stop)
        self._jobs.add(future)
        future.add_done_callback(self._jobs.discard)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            stop.set()
            await _ended(future)
            raise

    async def run_short(self, job: Callable[[threading.Event], T]) -> T:
        """Run a job that is shorter than the way to a thread: here, if it need not wait for the index.

        The job must not do anything before it has the index.
        """
        if self._executor is None:
            raise Closed("the backend is not open (or was closed)")
        try:
            return job(_AT_ONCE)
        except GivenUp:
            return await self.run(job)

    async def transact(self, action: Callable[[Transaction], T]) -> T:
        """Run a short action in one transaction."""

        def job(stop: threading.Event) -> T:
            with self.index.transaction(stop) as work:
                return action(work)

        return await self.run_short(job)

    async def close(self) -> None:
        """Wait for the jobs, then close the index. Idempotent."""
        executor, self._executor = self._executor, None
        while self._jobs:
            await asyncio.wait(self._jobs)
        if executor is not None:
            executor.shutdown()
            self.index.close()


async def _ended(future: asyncio.Future[T]) -> None:
    """Wait for a future, whatever it ends in and however often this task is cancelled meanwhile."""
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            continue
    future.exception()
