"""What an agent does for each request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from stagewire import KVBackend, KVError
from stagewire_writes import protocol as wire
from stagewire_writes.checksums import checksums
from stagewire_writes.errors import (
    FrameRefused,
    PayloadMissing,
    PayloadTooLarge,
    ReferenceRefused,
    SessionEnded,
    SessionUnknown,
    WriteError,
)
from stagewire_writes.export import Export
from stagewire_writes.offload import Offload
from stagewire_writes.options import SessionOptions
from stagewire_writes.session import frames_of, verified
from stagewire_writes.sessions import Sessions

GET_TIMEOUT = 10.0
"""Seconds that fetching a payload may take (WS-8)."""

SESSIONS, SMALL_PUT = "write-session", "small-put"
CAPABILITIES = (SESSIONS, SMALL_PUT)

Answer = dict[str, Any]
Data = Sequence[memoryview]


class Handlers:
    """Handles requests for one export. Belongs to one event loop."""

    def __init__(
        self, export: Export, sessions: Sessions, kv: KVBackend, options: SessionOptions, offload: Offload
    ) -> None:
        self._export = export
        self._sessions = sessions
        self._kv = kv
        self._options = options
        self._offload = offload
        self._operations: dict[str, tuple[type[wire.Head], Callable[[Any, Data], Awaitable[Answer]]]] = {
            "ping": (wire.Ping, self._ping),
            "open": (wire.Open, self._open),
            "raw": (wire.Frames, self._raw),
            "reference": (wire.Reference, self._reference),
            "wait": (wire.Barrier, self._wait),
            "finalize": (wire.Finalize, self._finalize),
            "abort": (wire.Abort, self._abort),
            "small-put": (wire.SmallPut, self._small_put),
            "stat": (wire.PathOf, self._stat),
            "list": (wire.ListOf, self._list),
            "read": (wire.Read, self._read),
            "remove": (wire.PathOf, self._remove),
            "make-directory": (wire.PathOf, self._make_directory),
            "rename": (wire.Rename, self._rename),
            "write-chunk": (wire.Chunk, self._write_chunk),
            "truncate": (wire.Truncate, self._truncate),
            "concatenate": (wire.Concatenate, self._concatenate),
        }

    async def handle(self, payload: Any, admit: Callable[[str], None]) -> Answer:
        """Do what a request asks for; ``admit`` refuses operations by raising. Raises `WriteError`."""
        op = wire.operation(payload)
        admit(op)
        if op not in self._operations:
            raise FrameRefused(f"there is no operation {op!r}: does the agent have an older version?")
        kind, operate = self._operations[op]
        return await operate(wire.head_of(payload, kind), wire.data_of(payload))

    async def _ping(self, head: wire.Ping, _data: Data) -> Answer:
        known = {}
        for name in head.sessions:
            try:
                known[name] = self._sessions.get(name, head.source).state()
            except SessionUnknown:
                continue
            except WriteError as error:
                known[name] = wire.SessionState(0, 0, error.code, str(error))
        return wire.answer(wire.Pong(self._sessions.instance, list(CAPABILITIES), known))

    async def _open(self, head: wire.Open, _data: Data) -> Answer:
        file = await self._offload(self._export.open_session, head.path, create_parents=head.create_parents)
        return wire.answer(wire.Opened(self._sessions.add(file, head.path, head.source).name))

    async def _raw(self, head: wire.Frames, data: Data) -> Answer:
        head.check(self._options.frame, self._options.batch_frames)

        async def fetch() -> Data:
            return await self._verified(head, data)

        return await self._take(head, fetch)

    async def _reference(self, head: wire.Reference, _data: Data) -> Answer:
        """Check everything that can be checked, and only then fetch (WS-8)."""
        head.check(self._options.frame, self._options.batch_frames)
        if head.key != wire.key_of(head, head.nonce, head.generation):
            raise ReferenceRefused(f"{head.key!r} is not the key of this reference: generation, nonce or frames differ")

        async def fetch() -> Data:
            return await self._verified(head, frames_of(await self._value(head.key), head.lengths))

        return await self._take(head, fetch)

    async def _take(self, head: wire.Frames, fetch: Callable[[], Awaitable[Data]]) -> Answer:
        session = self._sessions.get(head.session, head.source)
        self._export.require("write")
        await session.take(head, fetch, GET_TIMEOUT)
        return wire.answer(wire.Ack(session.received, session.written_bytes))

    async def _value(self, key: str) -> memoryview:
        try:
            holder = await self._kv.get(key)
        except KVError as error:
            raise PayloadMissing(f"the payload {key!r} could not be fetched: {error}") from error
        if holder is None:
            raise PayloadMissing(f"the payload {key!r} is gone: its lease ended, or it was never stored")
        with holder:
            return holder.data

    async def _verified(self, head: wire.Frames, frames: Data) -> Data:
        if [len(frame) for frame in frames] != head.lengths:
            raise FrameRefused(f"{len(frames)} frames came, of other lengths than announced: {head.lengths}")
        verified(frames, await self._offload(checksums, frames), head.checksums, head.sequence)
        return frames

    async def _wait(self, head: wire.Barrier, _data: Data) -> Answer:
        session = self._sessions.get(head.session, head.source)
        await session.barrier(head.expected_frames, self._options.control_timeout, rebase=True)
        return wire.answer(wire.Ack(session.received, session.written_bytes))

    async def _finalize(self, head: wire.Finalize, _data: Data) -> Answer:
        known = self._sessions.result(head.session, head.source)
        if known is None:
            session = self._sessions.get(head.session, head.source)
            known = await session.finalize(head, self._options.control_timeout)
        return wire.answer(known)

    async def _abort(self, head: wire.Abort, _data: Data) -> Answer:
        try:
            session = self._sessions.get(head.session, head.source)
        except WriteError:
            return wire.answer(wire.Done())  # it has ended already
        session.end(SessionEnded("the session was aborted"))
        await session.gone()
        return wire.answer(wire.Done())

    async def _small_put(self, head: wire.SmallPut, data: Data) -> Answer:
        (content,) = data if len(data) == 1 else (memoryview(b""),)
        if len(content) >= self._options.small_put:
            raise PayloadTooLarge(f"{len(content)} bytes are too many for a small put: from {self._options.small_put}")
        put = self._export.put_whole
        return wire.answer(
            await self._offload(put, head.path, content, head.checksum, create_parents=head.create_parents)
        )

    async def _stat(self, head: wire.PathOf, _data: Data) -> Answer:
        return wire.answer(await self._offload(self._export.stat, head.path))

    async def _list(self, head: wire.ListOf, _data: Data) -> Answer:
        return wire.answer(await self._offload(self._export.list, head.path, head.after, head.limit))

    async def _read(self, head: wire.Read, _data: Data) -> Answer:
        if head.offset < 0 or head.length < 0:
            raise FrameRefused(f"{head.length} bytes from offset {head.offset} cannot be read")
        content, file = await self._offload(self._export.read, head.path, head.offset, head.length, head.version)
        return wire.answer(file, [content])

    async def _remove(self, head: wire.PathOf, _data: Data) -> Answer:
        await self._offload(self._export.remove, head.path)
        return wire.answer(wire.Done())

    async def _make_directory(self, head: wire.PathOf, _data: Data) -> Answer:
        await self._offload(self._export.make_directory, head.path)
        return wire.answer(wire.Done())

    async def _rename(self, head: wire.Rename, _data: Data) -> Answer:
        await self._offload(self._export.rename, head.path, head.to)
        return wire.answer(wire.Done())

    async def _write_chunk(self, head: wire.Chunk, data: Data) -> Answer:
        (content,) = data if len(data) == 1 else (memoryview(b""),)
        await self._offload(self._export.write_chunk, head.path, head.offset, content, head.checksum)
        return wire.answer(wire.Done())

    async def _truncate(self, head: wire.Truncate, _data: Data) -> Answer:
        return wire.answer(await self._offload(self._export.truncate, head.path, head.size))

    async def _concatenate(self, head: wire.Concatenate, _data: Data) -> Answer:
        return wire.answer(await self._offload(self._export.concatenate, head.path, head.parts))
