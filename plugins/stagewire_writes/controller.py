"""The controller: sessions, small puts and reads, in the process of whoever writes (WS-1 … WS-20)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from stagewire import BatchTransport, Buffer, Clock, Closed, KVBackend, Lease, LeaseBackend, StillHeld, describe, emit
from stagewire.claims import TemporaryKeys
from stagewire.leases import SHARED, KeepaliveActor, KeepalivePolicy, SharedLease
from stagewire.lifecycle import Admission, ShutdownGate, TaskRegistry
from stagewire_writes import protocol as wire
from stagewire_writes.changes import Changes
from stagewire_writes.checksums import checksum
from stagewire_writes.errors import (
    AgentLost,
    AgentReplaced,
    AgentStopping,
    PayloadTooLarge,
    SessionEnded,
    WriteError,
)
from stagewire_writes.handle import WriteSession
from stagewire_writes.handlers import CAPABILITIES
from stagewire_writes.nodes import Nodes
from stagewire_writes.offload import Offload, Threads
from stagewire_writes.options import WritesOptions
from stagewire_writes.outgoing import Observe, Outgoing
from stagewire_writes.pieces import Pieces
from stagewire_writes.presence import Node
from stagewire_writes.remote import Remote
from stagewire_writes.sending import Sending
from stagewire_writes.target import Target

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

T = TypeVar("T")

THREADS = 4
QUIET = 5.0
"""Seconds that operations, and then tasks, have to end at a close."""

INLINE_HASH = 64 * 1024
"""Up to how many bytes a checksum is taken on the event loop's own thread."""

ABORT_TIMEOUT = 10.0
"""Seconds that an abort may take when nobody waits for it but the close."""

TRIES = 3
"""Agents that are tried for what can begin anywhere."""


class WriteController:
    """Writes and reads files of exports that agents serve. Belongs to one event loop; `open`, then `close`.

    Cancelling any call is safe: what was begun at an agent is given up there, at once or when it has been idle.

    Args:
        options: The exports and the bounds.
        batches: The mailboxes.
        kv: Where payloads go that travel by reference.
        leases: The leases of that store.
        clock: The clock of leases.
        log: For the events ``session.*``.
        capabilities: What may be used of the agents.
        offload: Runs what blocks. Default: threads of the controller's own.
    """

    def __init__(
        self,
        options: WritesOptions,
        *,
        batches: BatchTransport,
        kv: KVBackend,
        leases: LeaseBackend,
        clock: Clock,
        log: FilteringBoundLogger,
        capabilities: Iterable[str] = CAPABILITIES,
        offload: Offload | None = None,
    ) -> None:
        self.source = secrets.token_hex(8)
        """The controller's generation; every message of its sessions carries it."""
        self.options = options
        self.capabilities = frozenset(capabilities)
        """What may be used of the agents: ``write-session``, ``small-put`` (S3-1)."""
        self.changes = Changes()
        """Tells who caches that files changed (S3-5)."""
        self.kv = kv
        self.log = log
        """For events."""
        self._threads = None if offload is not None else Threads(THREADS, "controller")
        self._offload: Offload = offload or self._threads  # type: ignore[assignment]
        policy = _policy(options.keys.cadence)
        self.lease = SharedLease(
            leases, KeepaliveActor(leases, clock=clock, log=log), ttl=options.keys.ttl, policy=policy, log=log
        )
        """The one lease of this controller (LS-5)."""
        self.keys = TemporaryKeys(kv, leases, log=log)
        """The owner of the temporary keys."""
        self.remote = Remote(batches)
        """Asks agents."""
        self.nodes = Nodes(options, kv, self.remote, clock)
        self._sending = Sending(
            self.remote,
            self.keys,
            self.lease,
            source=self.source,
            options=options.session,
            offload=self._offload,
            clock=clock,
        )
        self._targets: dict[Node, Target] = {}
        self._gate = ShutdownGate("the write controller")
        self._aborts = TaskRegistry("aborts", log=log)
        self.pieces = Pieces(self)
        """Reads in pieces."""
        self._unsubscribe = self.lease.subscribe(self._degrade_all)

    async def open_session(
        self,
        export: str,
        path: str,
        *,
        create_parents: bool = True,
        observe: Observe = lambda _progress: None,
    ) -> WriteSession:
        """Open a session on a path, which it holds until it is finalized or aborted (WS-12).

        Raises:
            PathHeld: Somebody else is writing there.
            WriteError: The named error of what is in the way, or of the agents.
        """
        with self._gate.admit():
            return await self._anywhere(export, lambda node: self._open_at(node, path, create_parents, observe))

    async def put_small(self, export: str, path: str, data: Buffer, *, create_parents: bool = True) -> wire.Written:
        """Write a whole file of less than the small-put limit in one request (WS-13).

        Raises:
            PayloadTooLarge: It has the limit's size or more; open a session.
            AgentLost: No answer: the file is the old one or the new one, whole.
            WriteError: The named error of what is in the way.
        """
        view = memoryview(data)
        limit = self.options.session.small_put
        if view.nbytes >= limit:
            raise PayloadTooLarge(f"{path!r}: {view.nbytes} bytes; from {limit} on a file takes a session")
        crc = checksum(view) if view.nbytes <= INLINE_HASH else await self._offload(checksum, view)
        head = wire.SmallPut(path, crc, create_parents)
        timeout = self.options.session.raw_timeout.of(view.nbytes)
        with self._gate.admit():
            written = await self._anywhere(
                export,
                lambda node: self.remote.call(node, "small-put", head, wire.Written, timeout=timeout, data=[view]),
            )
        emit(self.log, "write.small_put", path=path, bytes=view.nbytes)
        self.changes.tell(export, path, parents=create_parents)
        return written

    async def ask(
        self,
        export: str,
        op: str,
        head: wire.Head,
        kind: type[wire.T],
        *,
        data: Buffer | None = None,
        timeout: float | None = None,
    ) -> wire.T:
        """Ask any agent of an export for something that needs no session."""
        views = [] if data is None else [memoryview(data)]
        timeout = timeout or self.options.session.raw_timeout.of(sum(view.nbytes for view in views))
        with self._gate.admit():
            return await self._anywhere(
                export, lambda node: self.remote.call(node, op, head, kind, timeout=timeout, data=views)
            )

    async def stat(self, export: str, path: str) -> wire.Entry:
        """Return how a file or directory is. Raises `NotFound`."""
        return await self.ask(export, "stat", wire.PathOf(path), wire.Entry)

    async def list(self, export: str, path: str = "", *, after: str = "", limit: int = 1_000) -> wire.Listing:
        """Return entries of a directory, in the order of their names, from the one after ``after`` on."""
        return await self.ask(export, "list", wire.ListOf(path, after, limit), wire.Listing)

    async def remove(self, export: str, path: str) -> None:
        """Remove a file, or a directory that is empty."""
        await self.ask(export, "remove", wire.PathOf(path), wire.Done)
        self.changes.tell(export, path, parents=True)

    async def make_directory(self, export: str, path: str) -> None:
        """Make a directory and its parents; does nothing when it is there."""
        await self.ask(export, "make-directory", wire.PathOf(path), wire.Done)
        self.changes.tell(export, path, parents=True)

    async def rename(self, export: str, path: str, to: str) -> None:
        """Move a file or directory within an export, replacing a file at the new path, whose parents are made."""
        await self.ask(export, "rename", wire.Rename(path, to), wire.Done)
        self.changes.tell(export, path, parents=True)
        self.changes.tell(export, to, parents=True)

    async def concatenate(self, export: str, path: str, parts: Sequence[str]) -> wire.Written:
        """Make one file of several on the agent's host; no byte comes here, and the parts stay."""
        head = wire.Concatenate(path, list(parts))
        timeout = self.options.session.control_timeout
        written = await self.ask(export, "concatenate", head, wire.Written, timeout=timeout)
        self.changes.tell(export, path, parents=True)
        return written

    async def read_at(
        self, export: str, path: str, offset: int, length: int, version: str = ""
    ) -> tuple[memoryview, wire.Written]:
        """Return bytes of a file, fewer at its end, and the file that they are of; from an agent, not from a cache.

        Raises:
            FileChanged: With a ``version``: the file is another one by now.
        """
        head = wire.Read(path, offset, length, version)
        timeout = self.options.session.raw_timeout.of(length)
        with self._gate.admit():
            written, data = await self._anywhere(
                export, lambda node: self.remote.fetch(node, "read", head, wire.Written, timeout=timeout)
            )
        return data[0], written

    async def close(self) -> None:
        """Stop as the source's controller does; then nothing is admitted and no task of it is left. Idempotent.

        Raises:
            StillHeld: Operations or tasks did not end in time; they stay owned. Close again.
        """
        self._gate.close()
        sessions = [session for target in self._targets.values() for session in target.sessions.values()]
        for session in sessions:
            session.fail(SessionEnded(f"{session.path!r}: the controller was closed"))
            self.spawn_abort(session.node, session.name)
        await self._quiesce()
        self._unsubscribe()
        self._unsubscribe = lambda: None
        await self.pieces.cache.close()
        await self.keys.close()
        await self.lease.close()
        self.nodes.close()
        self._aborts.close()
        await self._aborts.drain(QUIET)
        if self._threads is not None:
            self._threads.close()

    def admit(self) -> Admission:
        """Return the admission of one operation. Raises `Closed` after `close`."""
        return self._gate.admit()

    async def abort_session(self, node: Node, name: str) -> None:
        """Do `abort_remote` in a task of this controller's: it goes on when the caller is cancelled."""
        with suppress(Closed):
            await asyncio.shield(self._aborts.spawn(self.abort_remote(node, name), name=f"abort {name}"))

    async def _quiesce(self) -> None:
        try:
            async with asyncio.timeout(QUIET):
                await self._gate.quiesced()
        except TimeoutError:
            raise StillHeld("the write controller", [f"{self._gate.inside} operations"]) from None
        for target in self._targets.values():
            target.tasks.close()
            target.tasks.cancel_all()
            await target.tasks.drain(QUIET)
        self._targets.clear()

    async def _anywhere(self, export: str, attempt: Callable[[Node], Awaitable[T]]) -> T:
        """Try agents in turn; the next one where it is certain that the last has done nothing."""
        for left in range(TRIES, 0, -1):
            node = await self.nodes.choose(export)
            try:
                return await attempt(node)
            except (AgentReplaced, AgentStopping):
                self.nodes.gone(node)
                if left == 1:
                    raise
            except AgentLost:
                self.nodes.gone(node)
                raise
        raise AssertionError("the last try returns or raises")

    async def _open_at(self, node: Node, path: str, create_parents: bool, observe: Observe) -> WriteSession:  # noqa: FBT001 — of open_session
        opening = self._aborts.spawn(self._open_remote(node, path, create_parents), name=f"open {path}", report=False)
        try:
            name = await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._aborts.spawn(self._abort_late(opening, node), name=f"abort {path}")
            raise
        session = Outgoing(
            name, node, path, self.options.session, raw=self._reason_for_raw(), observe=observe, log=self.log
        )
        if self._gate.closed:
            self.spawn_abort(node, name)
            raise SessionEnded(f"{path!r}: the controller was closed")
        target = self._target(node)
        target.add(session)
        emit(self.log, "session.opened", session_id=name, path=path, node=node.name)
        return WriteSession(session, target, self)

    async def _open_remote(self, node: Node, path: str, create_parents: bool) -> str:  # noqa: FBT001 — same
        head = wire.Open(path, self.source, create_parents)
        timeout = self.options.session.raw_timeout.of(0)
        return (await self.remote.call(node, "open", head, wire.Opened, timeout=timeout)).session

    async def _abort_late(self, opening: asyncio.Task[str], node: Node) -> None:
        await asyncio.wait([opening])
        if not opening.cancelled() and opening.exception() is None:
            await self.abort_remote(node, opening.result())

    async def abort_remote(self, node: Node, name: str) -> None:
        """Give a session up at its agent, as well as that can be done (WS-11)."""
        with suppress(WriteError, Closed):
            await self.remote.call(node, "abort", wire.Abort(name, self.source), wire.Done, timeout=ABORT_TIMEOUT)

    def spawn_abort(self, node: Node, name: str) -> None:
        """Do `abort_remote` beside the work."""
        with suppress(Closed):
            self._aborts.spawn(self.abort_remote(node, name), name=f"abort {name}")

    def _reason_for_raw(self) -> str | None:
        if self.options.session.payload == "raw":
            return "configured"
        return None if self.lease.failure is None else str(self.lease.failure)

    def _target(self, node: Node) -> Target:
        if node not in self._targets:
            self._targets[node] = Target(
                node,
                self.remote,
                self._sending,
                source=self.source,
                options=self.options.session,
                gone=self.nodes.gone,
                log=self.log,
            )
        return self._targets[node]

    def _degrade_all(self, lease: Lease | None, error: Exception) -> None:
        """The shared lease has failed: every session goes on without it (LS-5)."""
        del lease
        for target in self._targets.values():
            for session in target.sessions.values():
                session.degrade(describe(error))


def _policy(cadence: float) -> KeepalivePolicy:
    """Return the shared policy with another cadence; its jitter keeps its share of it."""
    return replace(SHARED, cadence=cadence, jitter=SHARED.jitter * cadence / SHARED.cadence)
