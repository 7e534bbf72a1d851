"""Writes a file whose size nobody knows yet: small ones in one request, large ones through a session (S3-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagewire import Buffer
from stagewire_writes import protocol as wire
from stagewire_writes.checksums import checksum
from stagewire_writes.errors import SessionEnded
from stagewire_writes.handle import WriteSession
from stagewire_writes.handlers import SESSIONS, SMALL_PUT
from stagewire_writes.outgoing import Observe

if TYPE_CHECKING:
    from stagewire_writes.controller import WriteController

CHUNK = 1024 * 1024
"""Bytes of one write where there are no sessions."""


class HybridWriter:
    """Takes a file piece by piece. Belongs to one event loop; one call at a time.

    Less than the small-put limit in all is one small put at the end; from the limit on (exactly the limit counts) it is
    one session, with what was buffered first. ``bytes`` are kept by reference, anything else is copied. What the
    controller's ``capabilities`` lack is done without: chunk by chunk, then truncated.

    A call that fails, or is cancelled, gives the file up; the error is the first one (WS-11).
    """

    def __init__(
        self,
        controller: WriteController,
        export: str,
        path: str,
        *,
        create_parents: bool = True,
        observe: Observe = lambda _progress: None,
    ) -> None:
        self.size = 0
        """Bytes taken so far."""
        self._controller = controller
        self._export = export
        self._path = path
        self._create_parents = create_parents
        self._observe = observe
        self._options = controller.options.session
        self._parts: list[memoryview] = []
        self._buffered = 0
        self._offset = 0
        self._session: WriteSession | None = None
        self._closed = False

    @property
    def session(self) -> WriteSession | None:
        """The session, once there is one."""
        return self._session

    async def write(self, chunk: Buffer) -> None:
        """Take the next piece; waits while the session's window is full (WS-7)."""
        self._require_open()
        try:
            view = memoryview(chunk if isinstance(chunk, bytes) else bytes(chunk))
            for start in range(0, len(view), self._options.submit):
                await self._take(view[start : start + self._options.submit])
        except BaseException:
            await self.abort()
            raise

    async def finish(self) -> wire.Written:
        """Write what is left and end the file; returns its size and its time."""
        self._require_open()
        try:
            written = await self._finish()
        except BaseException:
            await self.abort()
            raise
        self._closed = True
        return written

    async def abort(self) -> None:
        """Give the file up. Raises nothing; idempotent."""
        self._closed = True
        self._parts.clear()
        if self._session is not None:
            await self._session.abort()

    def _require_open(self) -> None:
        if self._closed:
            raise SessionEnded(f"{self._path!r}: the writer has ended; open the file again")

    async def _take(self, view: memoryview) -> None:
        self._parts.append(view)
        self._buffered += len(view)
        self.size += len(view)
        if self.size < self._options.small_put:
            return
        if SESSIONS not in self._controller.capabilities:
            await self._flush_chunks()
            return
        if self._session is None:
            self._session = await self._controller.open_session(
                self._export, self._path, create_parents=self._create_parents, observe=self._observe
            )
        idle = self._session.idle and self._buffered >= self._options.frame
        if idle or self._buffered >= self._options.submit:
            await self._flush(self._session)

    async def _finish(self) -> wire.Written:
        if self._session is not None:
            await self._flush(self._session)
            return await self._session.finalize(self.size)
        if SMALL_PUT in self._controller.capabilities and self.size < self._options.small_put:
            return await self._controller.put_small(
                self._export, self._path, self._taken(), create_parents=self._create_parents
            )
        await self._flush_chunks()
        head = wire.Truncate(self._path, self.size)
        written = await self._controller.ask(self._export, "truncate", head, wire.Written)
        self._controller.changes.tell(self._export, self._path, parents=self._create_parents)
        return written

    async def _flush(self, session: WriteSession) -> None:
        offset, self._offset = self._offset, self._offset + self._buffered
        if self._buffered:
            await session.submit(offset, self._taken())

    async def _flush_chunks(self) -> None:
        """Write what is buffered where the file is, without a session."""
        if self._offset == 0 and self._create_parents and "/" in self._path:
            parent = wire.PathOf(self._path.rpartition("/")[0])
            await self._controller.ask(self._export, "make-directory", parent, wire.Done)
        data = self._taken()
        for start in range(0, len(data), CHUNK):
            piece = data[start : start + CHUNK]
            head = wire.Chunk(self._path, self._offset, checksum(piece))
            await self._controller.ask(self._export, "write-chunk", head, wire.Done, data=piece)
            self._offset += len(piece)

    def _taken(self) -> memoryview:
        """Return what is buffered as one, without a copy where it is one already."""
        parts, self._parts, self._buffered = self._parts, [], 0
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
