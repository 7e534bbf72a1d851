"""The sessions of one agent: the authoritative map (WS-10, WS-12, WS-15)."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

from stagewire import Clock, emit
from stagewire_writes.bell import Bell
from stagewire_writes.errors import ReferenceRefused, SessionEnded, SessionUnknown, WriteError
from stagewire_writes.files import SessionFile
from stagewire_writes.offload import Offload
from stagewire_writes.options import SessionOptions
from stagewire_writes.protocol import Written
from stagewire_writes.session import AgentSession

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

REMEMBERED = 1_024
"""Ended sessions of which it is known how they ended, for who asks again."""


class Sessions:
    """Every session from its opening until nothing of it is left. Belongs to one event loop.

    Args:
        instance: The agent process; part of every id, with a counter and what nobody can guess.
        options: Bounds.
        offload: Runs what blocks.
        clock: For idleness.
        log: For the events ``session.*``.
    """

    def __init__(
        self, instance: str, options: SessionOptions, offload: Offload, clock: Clock, log: FilteringBoundLogger
    ) -> None:
        self.instance = instance
        """The agent process."""
        self._options = options
        self._offload = offload
        self._clock = clock
        self._log = log
        self._numbers = itertools.count(1)
        self._sessions: dict[str, AgentSession] = {}
        self._ended: OrderedDict[str, tuple[str, Written | WriteError]] = OrderedDict()
        self._endings: dict[str, asyncio.Task[None]] = {}
        self._bell = Bell()

    def __len__(self) -> int:
        return len(self._sessions)

    def held(self) -> list[str]:
        """Name what has not ended."""
        return [f"session {session.name} on {session.path!r}" for session in self._sessions.values()]

    def add(self, file: SessionFile, path: str, source: str) -> AgentSession:
        """Register a session whose path was taken."""
        name = f"{self.instance}-{next(self._numbers)}-{secrets.token_hex(8)}"
        session = AgentSession(
            name,
            file,
            path=path,
            source=source,
            queue=self._options.agent_queue,
            offload=self._offload,
            clock=self._clock,
        )
        self._sessions[name] = session
        self._endings[name] = asyncio.get_running_loop().create_task(self._watch(session), name=f"end of {name}")
        return session

    def get(self, name: str, source: str) -> AgentSession:
        """Return a session and note that its controller lives.

        Raises:
            SessionUnknown: There is none of this name.
            ReferenceRefused: It belongs to another controller.
            WriteError: Why it has ended.
        """
        session = self._sessions.get(name)
        if session is None:
            raise self._why_gone(name, source)
        if session.source != source:
            raise ReferenceRefused(f"session {name!r} belongs to another controller than {source!r}")
        session.touch()
        return session

    def result(self, name: str, source: str) -> Written | None:
        """Return what a finalized session came to, for who missed the answer."""
        owner, end = self._ended.get(name, ("", None))
        return end if owner == source and isinstance(end, Written) else None

    def _why_gone(self, name: str, source: str) -> WriteError:
        owner, end = self._ended.get(name, ("", None))
        if owner != source or end is None:
            return SessionUnknown(f"there is no session {name!r} here: it ended long ago, or the agent was restarted")
        return end if isinstance(end, WriteError) else SessionEnded("the session was finalized; it takes nothing more")

    def sweep(self, failure: WriteError) -> None:
        """Let every session end."""
        for session in self._sessions.values():
            session.end(failure)

    def reap(self) -> None:
        """Let sessions end of which nothing was heard for long (WS-12)."""
        now = self._clock()
        for session in self._sessions.values():
            idle = now - session.touched
            if idle >= self._options.idle and session.failure is None:
                emit(self._log, "session.reaped", session_id=session.name, path=session.path, idle=round(idle, 1))
                session.end(SessionEnded(f"{session.path!r}: nothing was heard of the session for {idle:.0f} s"))

    async def empty(self) -> None:
        """Wait until there is none."""
        while self._sessions:
            await self._bell.wait()

    async def _watch(self, session: AgentSession) -> None:
        await session.gone()
        ids = {"session_id": session.name, "path": session.path}
        emit(self._log, "session.closed", **ids, frames=session.received, duplicates=session.duplicates)
        end = session.result or session.failure
        if end is not None:
            self._ended[session.name] = session.source, end
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        del self._sessions[session.name]
        del self._endings[session.name]
        self._bell.ring()
