"""Serves a mailbox: each request is handled by a task of its own and answered (WS-15)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from stagewire import BatchTransport, Closed, Delivery, TransportError, describe, emit
from stagewire.lifecycle import TaskRegistry
from stagewire_writes.errors import AgentStopping, WriteError
from stagewire_writes.protocol import refusal

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

SPARE = 4
"""Tasks that stay to wait for the next request."""

MOST = 256
RETRY = 0.5
INLINE = {"inline": "1"}

Handle = Callable[[Delivery], Awaitable[Any]]


class Server:
    """Takes requests from a mailbox while it is open. Belongs to one event loop.

    There is always one task that waits for a request, so one that takes long keeps none waiting.

    Args:
        batches: The mailboxes.
        mailbox: The one to serve.
        handle: Returns the payload of the answer; its `WriteError` is an answer as well.
        log: For the events ``agent.*``.
    """

    def __init__(self, batches: BatchTransport, mailbox: str, handle: Handle, log: FilteringBoundLogger) -> None:
        self._batches = batches
        self._mailbox = mailbox
        self._handle = handle
        self._log = log
        self._tasks = TaskRegistry(f"mailbox {mailbox}", log=log)
        self._idle: set[asyncio.Task[None]] = set()
        self._open = False

    @property
    def busy(self) -> int:
        """How many requests are being handled."""
        return len(self._tasks) - len(self._idle)

    def start(self) -> None:
        """Begin to serve."""
        self._open = True
        self._keep_one_waiting()

    async def stop(self) -> None:
        """Take no more; requests that were taken go on, see `quiesced`. Idempotent."""
        self._open = False
        idle = list(self._idle)
        for task in idle:
            task.cancel()
        if idle:
            await asyncio.wait(idle)

    async def quiesced(self) -> None:
        """Wait until every request that was taken has been answered."""
        await self._tasks.join()

    def _keep_one_waiting(self) -> None:
        if self._open and not self._idle and len(self._tasks) < MOST:
            task = self._tasks.spawn(self._serve(), name=f"serve {self._mailbox}")
            self._idle.add(task)
            task.add_done_callback(self._idle.discard)

    async def _serve(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "runs as a task"
        while self._open:
            try:
                async with self._batches.get_batch(self._mailbox) as batch:
                    self._idle.discard(task)
                    self._keep_one_waiting()
                    for delivery in batch:
                        await self._answer(delivery)
            except Closed:
                return
            except TransportError as error:
                emit(self._log, "agent.mailbox_failed", mailbox=self._mailbox, cause=describe(error))
                await asyncio.sleep(RETRY)
            if len(self._idle) >= SPARE:
                return
            self._idle.add(task)

    async def _answer(self, delivery: Delivery) -> None:
        try:
            payload = await self._handle(delivery)
        except WriteError as error:
            payload = refusal(error)
        except Closed as error:
            payload = refusal(AgentStopping(str(error)))
        except Exception as error:  # noqa: BLE001 — whoever asked is told; the agent goes on
            emit(self._log, "agent.fault", mailbox=self._mailbox, cause=describe(error), exc_info=error)
            payload = refusal(WriteError(f"the agent met an error that it did not foresee: {describe(error)}"))
        await self._reply(delivery, payload)

    async def _reply(self, delivery: Delivery, payload: Any) -> None:
        try:
            await delivery.reply(payload)
        except TransportError as error:
            emit(self._log, "agent.reply_failed", mailbox=self._mailbox, cause=describe(error))
            try:
                await delivery.reply(payload, INLINE)  # the KV backend may be what failed
            except TransportError:
                return
