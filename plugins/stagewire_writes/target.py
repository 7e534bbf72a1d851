"""What a controller has for one agent: its senders, and the question now and then whether it lives (WS-1, WS-19)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from stagewire.lifecycle import TaskRegistry
from stagewire_writes.errors import AgentLost, SessionUnknown, WriteError, from_wire
from stagewire_writes.options import SessionOptions
from stagewire_writes.outgoing import Outgoing, as_write_error
from stagewire_writes.presence import Node
from stagewire_writes.protocol import Ping, Pong
from stagewire_writes.remote import Remote
from stagewire_writes.sending import Sending

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

PING_TIMEOUT = 10.0
SILENT = 2
"""Questions in a row without an answer after which an agent counts as lost."""


class Target:
    """The sessions of one controller at one agent. Belongs to one event loop.

    Its tasks end when there is nothing to do and begin again when there is.

    Args:
        node: The agent.
        remote: Asks it.
        sending: Sends batches.
        source: The controller's generation.
        options: Bounds.
        gone: Told when the agent counts as lost.
        log: For the tasks.
    """

    def __init__(
        self,
        node: Node,
        remote: Remote,
        sending: Sending,
        *,
        source: str,
        options: SessionOptions,
        gone: Callable[[Node], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.node = node
        self.sessions: dict[str, Outgoing] = {}
        self.tasks = TaskRegistry(f"agent {node.name!r}", log=log)
        self._remote = remote
        self._sending = sending
        self._source = source
        self._options = options
        self._gone = gone
        self._waiting: deque[Outgoing] = deque()
        self._senders = 0
        self._pinging = False

    def add(self, session: Outgoing) -> None:
        """Take a session in; from now on the agent is asked about it."""
        self.sessions[session.name] = session
        if not self._pinging:
            self._pinging = True
            self.tasks.spawn(self._ping(), name=f"ask agent {self.node.name}")

    def remove(self, session: Outgoing) -> None:
        """Let go of a session that has ended."""
        self.sessions.pop(session.name, None)

    def schedule(self, session: Outgoing, batches: int) -> None:
        """Let the senders take so many batches of a session, after those that wait already."""
        self._waiting.extend([session] * batches)
        for _ in range(min(batches, self._options.senders - self._senders)):
            self._senders += 1
            self.tasks.spawn(self._send(), name=f"sender to {self.node.name}")

    async def _send(self) -> None:
        try:
            while self._waiting:
                await self._send_next(self._waiting.popleft())
        finally:
            self._senders -= 1

    async def _send_next(self, session: Outgoing) -> None:
        batch = session.next_batch()
        if batch is None:
            return
        try:
            async with session.while_alive():
                await self._sending.send(session, batch)
        except Exception as error:  # noqa: BLE001 — whoever waits for the session is told
            session.fail(as_write_error(error, session.path))

    async def _ping(self) -> None:
        silent = 0
        while self.sessions:
            await asyncio.sleep(self._options.heartbeat)
            if not self.sessions:
                break
            try:
                await self._ask()
                silent = 0
            except AgentLost as error:
                silent += 1
                if silent >= SILENT:
                    self._lose(error)
            except WriteError as error:
                self._lose(error)
        self._pinging = False

    async def _ask(self) -> None:
        asked = dict(self.sessions)
        patience = min(PING_TIMEOUT, self._options.idle / 3)
        ping = Ping(self._source, list(asked))
        pong = await self._remote.call(self.node, "ping", ping, Pong, timeout=patience)
        for name, session in asked.items():
            state = pong.sessions.get(name)
            if state is None:
                session.fail(SessionUnknown(f"{session.path!r}: agent {self.node.name!r} was restarted, or gave it up"))
            elif state.error:
                session.fail(from_wire(state.error, state.text))
            else:
                session.note_written(state.written)

    def _lose(self, error: WriteError) -> None:
        self._gone(self.node)
        lost = AgentLost(f"agent {self.node.name!r} of export {self.node.export!r} is lost: {error}")
        for session in list(self.sessions.values()):
            session.fail(lost)
        self.sessions.clear()
