"""Ends requests: exactly one terminal each, after every stage has let go of it (OR-6, OR-12).

Everything here but the waiting itself runs in the dispatcher, or in the handler while it registers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stagewire import RequestFailed, StageId, describe
from stagewire_orchestrator.clients import call
from stagewire_orchestrator.ledger import RequestState
from stagewire_orchestrator.outputs import OrchOutput
from stagewire_orchestrator.replicas import Replica
from stagewire_orchestrator.shared import Shared


@dataclass(slots=True, eq=False)
class Release:
    """A request that has ended and is being let go of; its terminal is told when that is done."""

    state: RequestState
    output: OrchOutput
    acknowledge: list[asyncio.Future[bool]] = field(default_factory=list)


class Endings:
    """Ends requests."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.releases: dict[str, Release] = {}
        """Requests that have ended and are being let go of, by wire id."""

    def fail(self, state: RequestState, stage: StageId, cause: str, error: BaseException | None = None) -> None:
        """End a request in ERROR; ``cause`` is a text, or the name of the hook that raised ``error``."""
        text = cause if error is None else f"{cause}: {describe(error)}"
        failure = RequestFailed(state.id, stage, text)
        failure.__cause__ = error
        self.finish(state, OrchOutput(state.id, stage, None, finished=True, error=failure, has_data=False))

    def cancel(self, state: RequestState, error: RequestFailed | None = None) -> Release | None:
        """End a request in CANCEL; what still waits for the client is dropped. Returns what is still to be released."""
        self._shared.outbox.purge(state.lane)
        return self.finish(state, _cancelled(state, error))

    def finish(self, state: RequestState, output: OrchOutput) -> Release | None:
        """End a request with this terminal, told now or once every stage has let go."""
        self._close(state)
        if (
            output.error is None
            and not output.cancelled
            and not state.making
            and all(run.ended for run in state.runs.values())
        ):
            self.settle(state, output)
            return None
        waits, holding = self._withdraw(state)
        if not waits and not holding:
            self.settle(state, output)
            return None
        release = self.releases[state.wire] = Release(state, output)
        self._shared.spawn(self._let_go(release, waits, holding), f"release {state.wire}")
        return release

    def drop(self, state: RequestState) -> None:
        """End a request in CANCEL without asking any stage; what waits for the client stays there. For shutdown."""
        self._close(state)
        for run in state.runs.values():
            if run.replica is not None and not run.ended:
                run.replica.load -= 1
                self._shared.submitters[run.replica].withdraw(run)
        self.settle(state, _cancelled(state, None))

    def settle(self, state: RequestState, output: OrchOutput) -> None:
        """Tell the terminal and give the id back; the last step of every request."""
        self._shared.door.leave(state.id)
        self._shared.outbox.put(state.lane, output)
        if output.cancelled:
            self._shared.door.free()  # whoever cancels need not read the terminal for the slot to come back
        self._shared.reports.ended(state, output, self._shared.ready.now)

    def released(self, release: Release) -> None:
        """Settle a request that every stage has let go of, and tell those who wait for that."""
        if self.releases.pop(release.state.wire, None) is None:
            return
        self.settle(release.state, release.output)
        for waiter in release.acknowledge:
            if not waiter.done():
                waiter.set_result(True)

    def _close(self, state: RequestState) -> None:
        state.over = True
        del self._shared.ledger[state.wire]
        for timer in (state.timer, state.look):
            if timer is not None:
                timer.cancel()
        state.lane.close()

    def _withdraw(self, state: RequestState) -> tuple[list[asyncio.Future[None]], list[Replica]]:
        """Take back what was not submitted yet. Returns what to wait for, and which replicas may hold the request."""
        making = list(state.making or ())
        for task in making:
            task.cancel()
        waits: list[asyncio.Future[None]] = [*making]
        holding: list[Replica] = []
        for run in state.runs.values():
            if run.replica is None:
                continue
            holding.append(run.replica)
            if not run.ended:
                run.replica.load -= 1
                unwound = self._shared.submitters[run.replica].withdraw(run)
                if unwound is not None:
                    waits.append(unwound)
        return waits, [each for each in holding if each.abort is not None and each.lost is None]

    async def _let_go(self, release: Release, waits: Iterable[asyncio.Future[None]], replicas: list[Replica]) -> None:
        state, patience = release.state, self._shared.limits.release_timeout
        try:
            async with asyncio.timeout(patience):
                pending = [each for each in waits if not each.done()]
                if pending:
                    await asyncio.wait(pending)
                await asyncio.gather(*(self._abort(replica, state) for replica in replicas))
        except TimeoutError:
            self._shared.reports.slow_release(state, patience)
        self._shared.ready.post(self.released, release)

    async def _abort(self, replica: Replica, state: RequestState) -> None:
        try:
            await call(replica.abort, state.wire)
        except Exception as error:  # noqa: BLE001 — a client that cannot let go is reported; the request ends all the same
            self._shared.reports.hook_failed(replica, "abort", error, request=state.id)


def acknowledged(release: Release | None, waiter: asyncio.Future[Any]) -> None:
    """Have a waiter told when the release is done; at once when there is none."""
    if release is not None:
        release.acknowledge.append(waiter)
    elif not waiter.done():
        waiter.set_result(True)


def _cancelled(state: RequestState, error: RequestFailed | None) -> OrchOutput:
    return OrchOutput(state.id, None, None, finished=True, error=error, has_data=False, cancelled=True)
