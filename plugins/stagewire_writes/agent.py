"""The agent: owns one export, takes requests from its mailboxes, writes files (WS-10 … WS-19)."""

from __future__ import annotations

import asyncio
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from stagewire import BatchTransport, Clock, Delivery, KVBackend, LeaseBackend, StillHeld, emit
from stagewire.lifecycle import TaskRegistry
from stagewire_writes.errors import AgentReplaced, AgentStopping, SessionEnded
from stagewire_writes.export import Export
from stagewire_writes.handlers import Handlers
from stagewire_writes.offload import Offload, Threads
from stagewire_writes.options import ExportOptions, SessionOptions
from stagewire_writes.presence import Node, Presence, mailbox_of
from stagewire_writes.protocol import INSTANCE
from stagewire_writes.server import Server
from stagewire_writes.sessions import Sessions

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

THREADS = 8
DEADLINE = 30.0
FREE = frozenset({"ping"})
"""What may be asked by somebody who does not know yet which process serves the node."""


def default_node() -> str:
    """Return the name of an agent that was given none: its host's."""
    return socket.gethostname()


class WriteAgent:
    """Serves one export. Belongs to one event loop; `start`, then `close`.

    Args:
        export: The export's name.
        options: Its tree and how it is written.
        batches: The mailboxes.
        kv: Where references lead to.
        leases: The leases of that store, under which the agent registers.
        clock: The clock of leases and of idleness.
        node: The agent's name; no two agents of an export have the same.
        session: Bounds; those of the controllers.
        deadline: Seconds that `close` may take (WS-15).
        offload: Runs what blocks. Default: threads of the agent's own.
        log: For the events ``agent.*`` and ``session.*``.
    """

    def __init__(
        self,
        export: str,
        options: ExportOptions,
        *,
        batches: BatchTransport,
        kv: KVBackend,
        leases: LeaseBackend,
        clock: Clock,
        log: FilteringBoundLogger,
        node: str | None = None,
        session: SessionOptions | None = None,
        deadline: float = DEADLINE,
        offload: Offload | None = None,
    ) -> None:
        self.instance = secrets.token_hex(8)
        """Names this process; part of the id of every session (WS-10)."""
        self.node = Node(export, node or default_node(), self.instance)
        self._options = options
        self._session = session or SessionOptions()
        self._kv = kv
        self._clock = clock
        self._deadline = deadline
        self._log = log.bind(export=export, node=self.node.name)
        self._threads = None if offload is not None else Threads(THREADS, f"agent-{export}")
        self._offload: Offload = offload or self._threads  # type: ignore[assignment]
        self._presence = Presence(self.node, kv, leases, clock=clock, log=log)
        self._tasks = TaskRegistry(f"agent {self.node.name!r} of export {export!r}", log=log)
        self._export: Export | None = None
        self.sessions = Sessions(self.instance, self._session, self._offload, clock, log)
        self._handlers: Handlers | None = None
        self._stopping = False
        self._servers = [
            Server(batches, mailbox_of(export, self.node.name, kind), self._handle, log) for kind in ("control", "data")
        ]

    async def start(self) -> None:
        """Open the tree, remove what killed agents left in it, register and serve.

        Raises:
            WriteError: The export's root cannot be had.
        """
        self._export = await self._offload(Export, self.node.export, self._options)
        self._handlers = Handlers(self._export, self.sessions, self._kv, self._session, self._offload)
        await self._reap_files(self._export)
        for server in self._servers:
            server.start()
        await self._presence.start()
        self._tasks.spawn(self._reap(self._export), name="reaper")
        emit(self._log, "agent.started", export=self.node.export, node=self.node.name, instance=self.instance)

    async def close(self) -> None:
        """Stop as WS-15 has it: admission, sweep, handlers, sweep, empty map; then let go of the tree. Idempotent.

        Raises:
            StillHeld: Not by the deadline; everything that is left stays owned. Close again.
        """
        self._stopping = True
        self._tasks.close()
        self._tasks.cancel_all()
        try:
            async with asyncio.timeout(self._deadline):
                await self._drain()
        except TimeoutError:
            raise StillHeld(f"agent {self.node.name!r}", self._held()) from None
        await self._presence.close()
        if self._export is not None:
            await self._offload(self._export.close)
            self._export = None
            emit(self._log, "agent.stopped", export=self.node.export, node=self.node.name)
        if self._threads is not None:
            self._threads.close()

    async def _drain(self) -> None:
        for server in self._servers:
            await server.stop()
        stopping = SessionEnded("the agent was stopped; open the session again")
        self.sessions.sweep(stopping)
        for server in self._servers:
            await server.quiesced()
        self.sessions.sweep(stopping)  # what an open that was under way put in
        await self.sessions.empty()
        await self._tasks.join()

    def _held(self) -> list[str]:
        handlers = sum(server.busy for server in self._servers)
        return [*self.sessions.held(), *([f"{handlers} requests"] if handlers else [])]

    async def _handle(self, delivery: Delivery) -> object:
        if self._stopping or self._handlers is None:
            raise AgentStopping(f"agent {self.node.name!r} is shutting down")
        meant = delivery.message.headers.get(INSTANCE)
        return await self._handlers.handle(delivery.message.payload, lambda op: self._require_self(op, meant))

    def _require_self(self, op: str, meant: str | None) -> None:
        if op not in FREE and meant != self.instance:
            raise AgentReplaced(f"node {self.node.name!r} is served by another process by now: ask again")

    async def _reap(self, export: Export) -> None:
        every = self._session.idle / 4
        while True:
            await asyncio.sleep(every)
            self.sessions.reap()
            await self._reap_files(export)

    async def _reap_files(self, export: Export) -> None:
        with suppress(OSError):
            count = await self._offload(export.reap, self._session.idle)
            if count:
                emit(self._log, "agent.files_reaped", files=count)
