"""The request handler: takes what `add_request` and `abort` queued, registers, then has the first stage submitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from stagewire_orchestrator.ledger import RequestState
from stagewire_orchestrator.mailbox import Mailbox
from stagewire_orchestrator.reports import Reports


class Add(NamedTuple):
    """A request to be registered."""

    id: str
    wire: str
    prompt: Any
    added_at: float


class Abort(NamedTuple):
    """A request to be aborted; the waiter is told whether there was one, once it is released."""

    id: str
    waiter: asyncio.Future[bool]


class Handler:
    """Works the inbox off in order, so an abort never overtakes the request it is for.

    Args:
        inbox: Where messages come from.
        reports: Where a fault of its own is told.
        register: Makes the ledger entry of a request.
        begin: Has its first stage submitted.
        abort: Passes an abort to the dispatcher.
    """

    def __init__(
        self,
        inbox: Mailbox[Add | Abort],
        reports: Reports,
        *,
        register: Callable[[Add], RequestState],
        begin: Callable[[RequestState], None],
        abort: Callable[[Abort], None],
    ) -> None:
        self._inbox = inbox
        self._reports = reports
        self._register = register
        self._begin = begin
        self._abort = abort

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            for message in await self._inbox.take():
                try:
                    self._handle(message)
                except Exception as error:  # noqa: BLE001 — one fault must not end the handler, and with it all requests
                    self._reports.fault(error)

    def _handle(self, message: Add | Abort) -> None:
        """Register, then submit (OR-2): no await stands between the two, so an output always finds its request."""
        if isinstance(message, Abort):
            self._abort(message)
        else:
            self._begin(self._register(message))
