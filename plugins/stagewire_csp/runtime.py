"""The runtime: workers for the three roles, watched, and stopped so that the books balance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stagewire import Clock, StillHeld, describe, emit, fallback_logger
from stagewire.lifecycle import CloseFailed, Closer, StopSignal, TaskRegistry
from stagewire_csp.capacity import Capacity
from stagewire_csp.crew import Crew
from stagewire_csp.failures import FailureBook, RoleFailed
from stagewire_csp.inventory import SIDES, Inventory, SideName
from stagewire_csp.monitor import Monitor
from stagewire_csp.report import CspReport
from stagewire_csp.roles import Caller, ConsumesPairs, MakesT, RequestsQ, Roles
from stagewire_csp.settings import RunSettings
from stagewire_csp.slots import Outcome
from stagewire_csp.snapshot import Snapshot, take_snapshot
from stagewire_csp.workers import Workers

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

DRAIN_SHARE = 0.9
"""The part of the deadline in which work may still end; the rest is for what was cut off to clean up."""


class CspRuntime:
    """Runs the three roles until their sources end, or until it is stopped. Belongs to one event loop; runs once.

    A role that fails is counted, reported and tried again after a pause; it never takes the runtime down. When a source
    has ended, what is in stock is paired as far as it goes, and the run ends.

    Args:
        producer: The S role, opened. It and the requester may have a ``settled`` method (`Settles`).
        requester: The P role, opened.
        consumer: The C role, opened.
        capacity: The capacities.
        settings: How the run behaves.
        clock: Monotonic seconds; also times the expiry of resources.
        wall: Unix time, for events only.
        log: Where events are emitted. Default: warnings on standard error.
        on_beat: Takes a snapshot several times a second, for a live view.
    """

    def __init__(
        self,
        producer: MakesT,
        requester: RequestsQ,
        consumer: ConsumesPairs,
        *,
        capacity: Capacity,
        settings: RunSettings | None = None,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
        log: FilteringBoundLogger | None = None,
        on_beat: Callable[[Snapshot], None] | None = None,
    ) -> None:
        self.capacity = capacity
        self.settings = settings or RunSettings()
        self.inventory = Inventory(capacity.t_slot, capacity.q_slot, clock=clock, on_settled=self._settled)
        """The stock."""
        roles = Roles(producer, requester, consumer)
        self._settlers = {side: roles.settler(side) for side in SIDES}
        self._wall = wall
        self._log = log or fallback_logger()
        self._book = FailureBook(self.settings.failures)
        caller = Caller(self._book)
        self._workers = Workers.build(self.inventory, roles, caller, capacity, self.settings)
        self._crew = Crew(self._workers, self._book, self._log, on_give_up=self._give_up, on_fault=self._died)
        self.monitor = Monitor(self.snapshot, self.inventory, self.settings, log=self._log, on_beat=on_beat)
        """The monitor."""
        self._watch = TaskRegistry("csp monitor", log=self._log)
        self._closer = Closer(self._let_go, name="csp runtime", held=lambda: self._crew.names, log=self._log)
        self._started: float | None = None
        self._stop = StopSignal()
        self._limit: asyncio.Timeout | None = None
        self._gave_up = False
        self._cut_off = False
        self._fault: BaseException | None = None

    async def run(self) -> CspReport:
        """Run to the end and return the account. Cancelling cuts the work off and lets go of everything.

        Raises:
            RuntimeError: It ran before, or was closed.
        """
        if self._started is not None or self._closer.requested:
            raise RuntimeError("a CspRuntime runs once: build another one")
        self._start()
        try:
            await self._work()
        finally:
            with suppress(CloseFailed):  # the report names what is held, and the closer goes on trying
                await self._closer.close()
        if self._fault is not None:
            raise self._fault
        report = self.report()
        emit(self._log, "csp.finished", **report.details())
        return report

    def stop(self, reason: str = "stop") -> None:
        """Begin nothing more, let what was begun end and what is in stock be paired, within the deadline (CSP-15).

        Idempotent, and may come before `run`. Call it on the event loop.
        """
        if self._stop.set(reason):
            emit(self._log, "csp.stopping", cause=reason, deadline=self.settings.deadline)
            self._end_sources()
            self._set_limit()

    async def close(self) -> None:
        """Cut off what still runs and write off what is in stock. Idempotent; `run` does it at its end.

        Raises:
            CloseFailed: A worker does not end although it was cancelled; closing goes on, and another call joins it.
        """
        await self._closer.close()

    def snapshot(self) -> Snapshot:
        """Return the state now. O(1), read-only."""
        started = self.inventory.clock() if self._started is None else self._started
        return take_snapshot(self._workers, self._book.counts, wall=self._wall(), started=started)

    def report(self) -> CspReport:
        """Return the account as it stands."""
        return CspReport(
            state=self.snapshot(),
            failures=tuple(self._book.kept),
            reason=self._stop.reason,
            gave_up=self._gave_up,
            cut_off=self._cut_off,
            stuck=self._crew.names if self._closer.requested else (),
        )

    def _start(self) -> None:
        self._started = self.inventory.clock()
        capacity = self.capacity
        emit(
            self._log,
            "csp.started",
            physical=capacity.physical,
            t_slot=capacity.t_slot,
            q_slot=capacity.q_slot,
            q_pending=capacity.q_pending,
            reason=capacity.reason,
        )
        self._crew.start(capacity)
        self._watch.spawn(self.monitor.run(), name="csp monitor")

    async def _work(self) -> None:
        try:
            async with asyncio.timeout(None) as self._limit:
                if self._stop.is_set:
                    self._end_sources()
                    self._set_limit()
                await self._crew.until_no_more_pairs()
        except TimeoutError:
            self._cut_off = True
            emit(self._log, "csp.cut_off", workers=list(self._crew.names))
        finally:
            self._limit = None  # a stop that comes later finds nothing to limit

    def _end_sources(self) -> None:
        self._workers.t.end()
        self._workers.q.end()

    def _set_limit(self) -> None:
        if self._limit is not None:
            now = asyncio.get_running_loop().time()
            self._limit.reschedule(now + self.settings.deadline * DRAIN_SHARE)

    async def _let_go(self) -> None:
        await self._crew.send_home(self.settings.deadline * (1 - DRAIN_SHARE))
        await self.inventory.close()
        self._watch.close()
        self._watch.cancel_all()
        await self._watch.join()
        if self._crew.names:
            raise StillHeld("csp runtime", [f"worker {name}" for name in self._crew.names])

    def _give_up(self, failure: RoleFailed) -> None:
        self._gave_up = True
        self.stop(f"{failure.role} failed {self.settings.failures.give_up} times in a row")

    def _died(self, _task: asyncio.Task[Any], error: BaseException) -> None:
        self._fault = self._fault or error
        self.stop(f"a worker died: {describe(error)}")

    def _settled(self, side: SideName, resource: Any, outcome: Outcome) -> None:
        settler = self._settlers[side]
        if settler is None:
            return
        try:
            settler.settled(resource, outcome)
        except Exception as error:  # noqa: BLE001 — a role may raise anything, and the books go on
            emit(self._log, "csp.settled_failed", side=side, outcome=str(outcome), cause=describe(error))
