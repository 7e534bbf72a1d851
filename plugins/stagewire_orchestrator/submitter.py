"""One worker for each replica's ``submit``, which may block: a slow one holds up nobody but its own replica (OR-3)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from stagewire_orchestrator.ledger import RequestState, StageRun
from stagewire_orchestrator.ready import ReadyQueue
from stagewire_orchestrator.replicas import Replica

OnSubmitted = Callable[[RequestState, StageRun], None]
OnRefused = Callable[[RequestState, StageRun, BaseException], None]


class Submitter:
    """Submits in order, one at a time. What was withdrawn is not submitted, or is interrupted.

    Args:
        replica: Where to.
        ready: The dispatcher's queue, which the two are put into.
        on_submitted: Called after each submission that the client took.
        on_refused: Called with the error after each that it did not take.
    """

    def __init__(self, replica: Replica, ready: ReadyQueue, on_submitted: OnSubmitted, on_refused: OnRefused) -> None:
        self._replica = replica
        self._ready = ready
        self._on_submitted = on_submitted
        self._on_refused = on_refused
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
        if run is self._current and self._task is not None:
            return self._interrupt(self._task)
        self._parcels.pop(run, None)
        return None

    async def run(self) -> None:
        """Work until cancelled."""
        self._task = asyncio.current_task()
        while not _own_cancel():
            await self._news.wait()
            self._news.clear()
            while self._parcels and not _own_cancel():
                run, (state, payload) = self._parcels.popitem(last=False)
                await self._submit(state, run, payload)

    async def _submit(self, state: RequestState, run: StageRun, payload: Any) -> None:
        self._current = run
        try:
            await self._replica.client.submit(state.wire, payload)
        except asyncio.CancelledError as error:
            if not self._interrupted and _own_cancel():
                raise
            self._refused(state, run, error)
        except Exception as error:  # noqa: BLE001 — a client may raise anything, and it fails that request only (OR-10)
            self._refused(state, run, error)
        else:
            if not self._interrupted:
                self._ready.post(self._on_submitted, state, run)
        finally:
            self._settle()

    def _refused(self, state: RequestState, run: StageRun, error: BaseException) -> None:
        if not self._interrupted:
            self._ready.post(self._on_refused, state, run, error)

    def _interrupt(self, task: asyncio.Task[Any]) -> asyncio.Future[None]:
        if self._unwound is None:
            self._unwound = asyncio.get_running_loop().create_future()
            self._interrupted = True
            task.cancel()
        return self._unwound

    def _settle(self) -> None:
        self._current = None
        if self._interrupted and self._task is not None:
            self._task.uncancel()
        self._interrupted = False
        if self._unwound is not None and not self._unwound.done():
            self._unwound.set_result(None)
        self._unwound = None


def _own_cancel() -> bool:
    """Whether somebody cancelled this task, rather than the client raising the error by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
