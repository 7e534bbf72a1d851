"""A session in the hands of whoever writes (WS-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from stagewire import Buffer, Closed, Retryable, emit
from stagewire_writes import protocol as wire
from stagewire_writes.errors import AgentLost, SessionEnded, WriteError
from stagewire_writes.outgoing import Outgoing, SessionProgress
from stagewire_writes.target import Target

if TYPE_CHECKING:
    from stagewire_writes.controller import WriteController

T = TypeVar("T")

ATTEMPT = 60.0
"""Seconds after which a barrier whose answer did not come is asked for again."""


class WriteSession:
    """One file being written. Belongs to one event loop.

    As a context manager it is aborted at the end of the block unless it was finalized.
    """

    def __init__(self, session: Outgoing, target: Target, controller: WriteController) -> None:
        self._session = session
        self._target = target
        self._controller = controller
        self._options = controller.options.session
        self._ended = False

    @property
    def id(self) -> str:
        """The session's id at its agent."""
        return self._session.name

    @property
    def path(self) -> str:
        """What is written."""
        return self._session.path

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be sent or acknowledged."""
        return self._session.idle

    @property
    def progress(self) -> SessionProgress:
        """How far it is (WS-20)."""
        return self._session.progress

    async def submit(self, offset: int, payload: Buffer) -> None:
        """Queue a payload, and no more (WS-3). It must follow the one before it, and not change until a barrier.

        Waits while the window is full (WS-7). Cancelled while it waits, it has queued nothing.

        Raises:
            OffsetRefused: It overlaps, or leaves a gap (WS-4).
            WriteError: The session has failed; abort it.
        """
        self._target.schedule(self._session, await self._session.submit(offset, payload))

    async def wait(self) -> None:
        """Wait until everything submitted is written; then the next payload may begin anywhere (WS-3, WS-4).

        Raises:
            WriteError: The session has failed; abort it.
        """
        await self._session.acknowledged()
        head = wire.Barrier(self.id, self._controller.source, self._session.frames)
        ack = await self._insist("wait", head, wire.Ack)
        self._session.note_written(ack.written)
        self._session.rebase()

    async def finalize(self, final_size: int | None = None) -> wire.Written:
        """Wait for every acknowledgement and every write, set the exact length, give the file its name (WS-3).

        On failure, and when cancelled, the session is aborted; the first error is raised (WS-11).

        Args:
            final_size: The file's length. Default: where the last payload ended.

        Raises:
            WriteError: What failed. After `AgentLost` the file is the old one or the new one, whole.
        """
        try:
            with self._controller.admit():
                written = await self._finalize(final_size)
        except BaseException:
            await self.abort()
            raise
        self._end()
        self._session.note_written(self._session.progress.accepted)
        traffic = asdict(self._session.traffic)
        emit(
            self._controller.log,
            "session.finalized",
            session_id=self.id,
            path=self.path,
            bytes=written.size,
            **traffic,
        )
        self._controller.changes.tell(self._session.node.export, self.path, parents=True)
        return written

    async def abort(self) -> None:
        """Give the session up, at its agent too as well as that can be done. Raises nothing; idempotent (WS-11)."""
        if self._ended:
            return
        self._end()
        self._session.fail(SessionEnded(f"{self.path!r}: the session was aborted"))
        traffic = asdict(self._session.traffic)
        emit(self._controller.log, "session.aborted", session_id=self.id, path=self.path, **traffic)
        await self._controller.abort_session(self._session.node, self.id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.abort()

    def _end(self) -> None:
        self._ended = True
        self._target.remove(self._session)

    async def _finalize(self, final_size: int | None) -> wire.Written:
        session = self._session
        await session.acknowledged()
        session.close()
        size = session.end if final_size is None else final_size
        crc = session.checksum.value if session.sequential and size == session.end else None
        head = wire.Finalize(self.id, self._controller.source, session.frames, size, crc)
        return await self._insist("finalize", head, wire.Written)

    async def _insist(self, op: str, head: wire.Head, kind: type[wire.T]) -> wire.T:
        """Ask again when the answer does not come, for as long as a barrier may take and the agent lives."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.control_timeout

        async def ask() -> wire.T:
            while True:
                left = deadline - loop.time()
                try:
                    return await self._controller.remote.call_data(
                        self._session.node, op, head, kind, timeout=max(0.001, min(ATTEMPT, left))
                    )
                except Retryable as error:
                    if loop.time() >= deadline:
                        raise AgentLost(f"{self.path!r}: {op} was not answered: {error}") from error
                    await asyncio.sleep(min(0.2, max(0.0, deadline - loop.time())))

        return await self._unless_failed(ask)

    async def _unless_failed(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            async with self._session.while_alive():
                return await work()
        except TimeoutError:
            raise self._session.failure or WriteError(f"{self.path!r}: ended") from None
        except Closed as error:
            raise AgentLost(f"{self.path!r}: the transport was closed") from error
