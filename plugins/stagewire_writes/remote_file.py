"""A remote file for code that knows files: it blocks, and works with everything that takes a binary file (WS-16)."""

from __future__ import annotations

import asyncio
import io
import os
import warnings
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from stagewire_writes import protocol as wire
from stagewire_writes.errors import IsDirectory
from stagewire_writes.hybrid import HybridWriter

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from stagewire_writes.controller import WriteController

T = TypeVar("T")


class RemoteFile(io.RawIOBase):
    """A file of an export, opened for writing or for reading. Used by one thread at a time, never by the loop's own.

    ``wb``: what is written replaces the file when it is closed, all of it or nothing: `close` is finalize. An exception
    in the ``with`` block, or a call that fails, gives it up and leaves the old file (`abort`). ``rb``: read piece by
    piece, ahead of the reader, one version of the file from beginning to end.

    Args:
        controller: Open.
        loop: The event loop to which the controller belongs; it runs in another thread.
        export: The export.
        path: The path in it.
        mode: ``rb`` or ``wb``.

    Raises:
        NotFound: ``rb``, and there is no such file.
        RuntimeError: Called in the loop's own thread, which would wait for itself.
    """

    def __init__(
        self,
        controller: WriteController,
        loop: asyncio.AbstractEventLoop,
        export: str,
        path: str,
        mode: Literal["rb", "wb"] = "rb",
    ) -> None:
        super().__init__()
        if mode not in ("rb", "wb"):
            raise ValueError(f"mode {mode!r}: a remote file is opened with 'rb' or 'wb'")
        self.name = f"{export}/{path}"
        self.mode = mode
        self._loop = loop
        self._controller = controller
        self._place = export, path
        self._writer: HybridWriter | None = None
        self._position = 0
        self._rest = memoryview(b"")
        self._streams: AsyncExitStack | None = None
        self._stream: AsyncGenerator[memoryview, None] | None = None
        if mode == "wb":
            self._writer = HybridWriter(controller, export, path)
        else:
            self._file = self._wait(self._stat())

    def readable(self) -> bool:
        """Whether it was opened for reading."""
        return self._writer is None

    def writable(self) -> bool:
        """Whether it was opened for writing."""
        return self._writer is not None

    def seekable(self) -> bool:
        """Whether it was opened for reading."""
        return self._writer is None

    def write(self, data: ReadableBuffer) -> int:
        """Take all of the data; it may change afterwards. A failure gives the file up (WS-16)."""
        self._require_open()
        if self._writer is None:
            raise io.UnsupportedOperation("the file was opened for reading")
        chunk = data if isinstance(data, bytes) else bytes(memoryview(data))
        self._wait(self._writer.write(chunk))
        self._position += len(chunk)
        return len(chunk)

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill as much of the buffer as one piece has; 0 at the end."""
        self._require_open()
        if self._writer is not None:
            raise io.UnsupportedOperation("the file was opened for writing")
        target = memoryview(buffer).cast("B")
        if not self._rest and self._position < self._file.size:
            self._rest = self._wait(self._next())
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._position += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go on reading elsewhere."""
        self._require_open()
        if self._writer is not None:
            raise io.UnsupportedOperation("a remote file is written from beginning to end")
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        if base + offset < 0:
            raise ValueError(f"offset {base + offset} is before the beginning of the file")
        if base + offset != self._position:
            self._wait(self._stop_streaming())
            self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def close(self) -> None:
        """End it: what was written is finalized. A failure gives it up and is raised, the first one (WS-16)."""
        if self.closed:
            return
        try:
            if self._writer is None:
                self._wait(self._stop_streaming())
            else:
                self._wait(self._writer.finish())
        finally:
            super().close()

    def abort(self) -> None:
        """Give up what was written: the old file stays. Idempotent."""
        if self.closed:
            return
        try:
            if self._writer is not None:
                self._wait(self._writer.abort())
            else:
                self._wait(self._stop_streaming())
        finally:
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        """What was not closed is given up, not kept half."""
        if getattr(self, "_loop", None) is None or self.closed:
            return
        if self._writer is not None:
            warnings.warn(f"remote file {self.name!r} was not closed: it is given up", ResourceWarning, stacklevel=2)
            if not self._loop.is_closed():
                asyncio.run_coroutine_threadsafe(self._writer.abort(), self._loop)
        io.RawIOBase.close(self)

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError(f"remote file {self.name!r} is closed")

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if _running_loop() is self._loop:
            work.close()
            raise RuntimeError(
                "a RemoteFile blocks: use it in another thread than the event loop's (asyncio.to_thread)"
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _stat(self) -> wire.Entry:
        export, path = self._place
        entry = await self._controller.stat(export, path)
        if entry.directory:
            raise IsDirectory(f"{path!r}: it is a directory; name a file")
        return entry

    async def _next(self) -> memoryview:
        if self._stream is None:
            self._streams = AsyncExitStack()
            export, path = self._place
            stream = self._controller.pieces.stream(export, path, self._file, self._position)
            self._stream = await self._streams.enter_async_context(stream)
        return await anext(self._stream, memoryview(b""))

    async def _stop_streaming(self) -> None:
        self._rest = memoryview(b"")
        streams, self._streams, self._stream = self._streams, None, None
        if streams is not None:
            await streams.aclose()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
