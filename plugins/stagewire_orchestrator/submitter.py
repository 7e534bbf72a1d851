"""One worker for each replica's ``submit``, which may block: a slow one holds up nobody but its own replica (OR-3)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from stagewire_orchestrator.ledger import RequestState, StageRun
from stagewire_orchestrator.ready import ReadyQueue
from stagewire_orchestrator.replicas import Replica
from stagewire_orchestrator.tasks import own_task

OnSubmitted = Callable[[RequestState, StageRun], None]
OnRefused = Callable[[RequestState, StageRun, BaseException], None]


class Submitter:
    """Submits in order, one at a time. What was withdrawn is not submitted, or is interrupted.

    Args:
        replica: Where to.
        ready: The dispatcher's queue, which the two are put into.
        on_submitted: Called after each submission that the client took.
        on_refused: Called with the error after each that it did not take.
        tell_all: Whether somebody wants to know of every submission, and not only of a request's first.
    """

    def __init__(
        self,
        replica: Replica,
        ready: ReadyQueue,
        *,
        on_submitted: OnSubmitted,
        on_refused: OnRefused,
        tell_all: bool,
    ) -> None:
        self._replica = replica
        self._ready = ready
        self._on_submitted = on_submitted
        self._on_refused = on_refused
        self._tell_all = tell_all
        self._parcels: OrderedDict[StageRun, tuple[RequestState, Any]] = OrderedDict()
        self._news = asyncio.Event()
        self._current: StageRun | None = None
        self._interrupted = False
        self._unwound: asyncio.Future[None] | None = None
        self._task: asyncio.Task[Any] | None = None

    def __len__(self) -> int:
        return len(self._parcels)

    def add(self, state: RequestState, run: StageRun, payload: Any) -> None:
        """Have a payload submitted."""
        self._parcels[run] = (state, payload)
        self._news.set()

    def withdraw(self, run: StageRun) -> asyncio.Future[None] | None:
        """Take a submission back. Returns what to wait for when the client has it in hand just now, else ``None``."""
        if run is self._current:
            return self._interrupt()
        self._parcels.pop(run, None)
        return None

    async def run(self) -> None:
        """Work until cancelled."""
        task = self._task = own_task()
        while not task.cancelling():
            await self._news.wait()
            self._news.clear()
            while self._parcels and not task.cancelling():
                run, (state, payload) = self._parcels.popitem(last=False)
                await self._submit(state, run, payload)

    async def _submit(self, state: RequestState, run: StageRun, payload: Any) -> None:
        self._current = run
        try:
            await self._replica.client.submit(state.wire, payload)
        except asyncio.CancelledError as error:
            if not self._interrupted and own_task().cancelling():
                raise
            self._refused(state, run, error)
        except Exception as error:  # noqa: BLE001 — a client may raise anything, and it fails that request only (OR-10)
            self._refused(state, run, error)
        else:
            self._replica.submitted += 1
            if run.node.entry or self._tell_all:
                self._ready.post(self._on_submitted, state, run)
        finally:
            self._current = None
            if self._interrupted:
                self._settle()

    def _refused(self, state: RequestState, run: StageRun, error: BaseException) -> None:
        if not self._interrupted:
            self._ready.post(self._on_refused, state, run, error)

    def _interrupt(self) -> asyncio.Future[None]:
        if self._unwound is None:
            self._unwound = asyncio.get_running_loop().create_future()
            self._interrupted = True
            if self._task is not None:
                self._task.cancel()
        return self._unwound

    def _settle(self) -> None:
        self._interrupted = False
        own_task().uncancel()
        if self._unwound is not None and not self._unwound.done():
            self._unwound.set_result(None)
        self._unwound = None
