"""The workers as tasks: each repeats its cycle until there is nothing more to do, and outlives its role's failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from stagewire import Closed, emit
from stagewire.lifecycle import OnFailure, TaskRegistry
from stagewire_csp.capacity import Capacity
from stagewire_csp.failures import FailureBook, RoleFailed
from stagewire_csp.source import Source, SourceEnded
from stagewire_csp.workers import Workers

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Cycle = Callable[[], Awaitable[None]]
"""One cycle of a worker."""


class Crew:
    """Runs the workers of a run. Belongs to one event loop.

    Args:
        workers: What they do.
        book: Where failures of roles are noted.
        log: Where they are reported.
        on_give_up: Called when a role failed too often in a row.
        on_fault: Takes a worker that died of a fault of the runtime itself, and the fault.
    """

    def __init__(
        self,
        workers: Workers,
        book: FailureBook,
        log: FilteringBoundLogger,
        *,
        on_give_up: Callable[[RoleFailed], None],
        on_fault: OnFailure,
    ) -> None:
        self._makers = TaskRegistry("csp producers", log=log, on_failure=on_fault)
        self._takers = TaskRegistry("csp consumers", log=log, on_failure=on_fault)
        self._workers = workers
        self._book = book
        self._log = log
        self._on_give_up = on_give_up

    def start(self, capacity: Capacity) -> None:
        """Start all workers (CSP-9)."""
        workers = self._workers
        self._start_makers("S", capacity.s_workers, workers.make_t, workers.t)
        self._start_makers("P", capacity.p_workers, workers.request_q, workers.q)
        for number in range(capacity.c_workers):
            name = f"C{number}"
            self._takers.spawn(self._repeat(name, workers.consume_pair, None), name=name)

    @property
    def names(self) -> tuple[str, ...]:
        """The workers that have not ended."""
        return self._makers.names + self._takers.names

    async def until_no_more_pairs(self) -> None:
        """Wait until the last consumer has ended: from then on nothing that is produced can be consumed."""
        await self._takers.join()

    async def send_home(self, seconds: float) -> None:
        """Start no more, cancel who works, and wait ``seconds`` for them to end. Who does not is still in `names`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for tasks in (self._makers, self._takers):
                    tasks.close()
                    tasks.cancel_all()
                await self._makers.join()
                await self._takers.join()

    def _start_makers(self, kind: str, count: int, cycle: Cycle, source: Source) -> None:
        for number in range(count):
            name = f"{kind}{number}"
            source.add_worker(self._makers.spawn(self._repeat(name, cycle, source), name=name))

    async def _repeat(self, name: str, cycle: Cycle, source: Source | None) -> None:
        streak = 0
        pause: float | None
        while True:
            try:
                await cycle()
            except Closed:  # the inventory; what a role raises is wrapped
                return
            except SourceEnded:
                self._end(source)
                return
            except RoleFailed as failure:
                streak += 1
                pause = self._failed(name, failure, streak)
            else:
                streak, pause = 0, None
            finally:
                if source is not None:
                    source.rest()
            if pause is not None:
                await asyncio.sleep(pause)

    def _end(self, source: Source | None) -> None:
        assert source is not None, "consumers have no source"
        source.end()

    def _failed(self, name: str, failure: RoleFailed, streak: int) -> float:
        """Note and report a failure; returns the seconds to pause."""
        too_many = self._book.failed(failure)
        pause = self._book.policy.pause(streak)
        emit(
            self._log,
            "csp.role_failed",
            worker=name,
            role=failure.role,
            cause=failure.cause,
            streak=streak,
            pause=pause,
        )
        if too_many:
            self._on_give_up(failure)
        return pause
