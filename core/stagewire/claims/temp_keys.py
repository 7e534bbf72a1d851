"""The owner of temporary keys (TK-1 … TK-5): from the moment a put begins, somebody sees to it that the key goes.

A key is recorded before it is put, so a sender that fails, is cancelled or forgets leaves nothing behind. Each record
is driven by one task of the owner, through the states of the specification::

    Putting -> Borrowed(Committed | CommitUnknown) -> DeletePending(…) -> gone

A put that ended in an error or in silence may still take effect later, so its key is looked at again and again, also
after it was not found, until its lease has ended: then no put under it can be accepted any more.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Self

from stagewire.errors import KVError, describe
from stagewire.events import emit
from stagewire.lifecycle import ShutdownGate, TaskRegistry
from stagewire.logs import fallback_logger
from stagewire.spec.kv import Buffer, KVBackend
from stagewire.spec.lease import Lease, LeaseBackend

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

TRACKED = 64
STORED_TIMEOUT = 10.0
PUT_TIMEOUT = 30.0
DELETE_TIMEOUT = 1.0
FIRST_BACKOFF, LAST_BACKOFF = 0.1, 5.0
RECHECK = 5.0
JITTER = 0.25
GRACE = 5.0


class TooManyKeys(KVError):
    """As many temporary keys as allowed are tracked: this one was refused before its put (TK-3). Send inline."""


class State(Enum):
    """Where a temporary key is in its life (TK-2)."""

    PUTTING = "putting"
    BORROWED = "borrowed"
    DELETE_PENDING = "delete pending"


@dataclass(slots=True, eq=False)
class _Record:
    key: str
    value: Buffer | None
    lease: Lease
    began: float
    outcome: asyncio.Future[None]
    committed: bool | None = None
    dropped: asyncio.Event = field(default_factory=asyncio.Event)
    handed_over: bool = False
    checks: int = 0

    @property
    def state(self) -> State:
        if self.committed is None:
            return State.PUTTING
        return State.DELETE_PENDING if self.dropped.is_set() else State.BORROWED


class Ticket:
    """A sender's hold on a temporary key. Dropping it means "no longer borrowed", not "deleted" (TK-4).

    As a context manager it drops itself at the end of the block.
    """

    def __init__(self, record: _Record) -> None:
        self._record = record

    @property
    def key(self) -> str:
        """The key."""
        return self._record.key

    async def stored(self, timeout: float = STORED_TIMEOUT) -> None:
        """Wait until the value is stored.

        Raises:
            KVError: The put failed, or had no result in time. The key stays owned; send inline.
        """
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._record.outcome)
        except TimeoutError:
            raise KVError(f"the put of {self.key!r} had no result within {timeout:g} s") from None

    def drop(self) -> None:
        """Borrow the key no longer. Idempotent; never waits."""
        self._record.dropped.set()

    def hand_over(self) -> None:
        """Give a stored key to whoever learns of it next: it is no longer tracked, and ends with its lease at last.

        Does nothing after `drop`.
        """
        if not self._record.dropped.is_set():
            self._record.handed_over = True
            self._record.dropped.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.drop()


class TemporaryKeys:
    """Owns the temporary keys of one controller. Belongs to one event loop.

    Args:
        kv: Where the values go.
        leases: Where the leases are: says when an uncertain key can no longer appear.
        tracked: How many keys are tracked at most.
        log: For the events ``key.*``.
    """

    def __init__(
        self, kv: KVBackend, leases: LeaseBackend, *, tracked: int = TRACKED, log: FilteringBoundLogger | None = None
    ) -> None:
        self._kv = kv
        self._leases = leases
        self._tracked = tracked
        self._log = log or fallback_logger()
        self._records: dict[str, _Record] = {}
        self._gate = ShutdownGate("temporary keys")
        self._tasks = TaskRegistry("temporary keys", log=self._log)
        self._full_reported = False

    def __len__(self) -> int:
        """How many keys are tracked."""
        return len(self._records)

    def states(self) -> dict[str, State]:
        """Return the state of each tracked key."""
        return {key: record.state for key, record in self._records.items()}

    def begin_put(self, key: str, value: Buffer, lease: Lease) -> Ticket:
        """Record the key, then begin to put it under the lease (TK-1). Never waits; nothing was put when it raises.

        The value must not change until the put has ended.

        Raises:
            TooManyKeys: As many as allowed are tracked, none of which is evicted.
            Closed: After `close`.
        """
        with self._gate.admit():
            self._refuse_when_full(key)
            loop = asyncio.get_running_loop()
            record = _Record(key, value, lease, loop.time(), loop.create_future())
            record.outcome.add_done_callback(_mark_retrieved)
            self._records[key] = record
            task = self._tasks.spawn(self._own(record), name=f"temporary-key-{key}")
            task.add_done_callback(lambda _task: self._forget(record))
            return Ticket(record)

    async def close(self, grace: float = GRACE) -> None:
        """Admit no more, let what can go within ``grace`` seconds, then stop; the leases' TTL takes the rest (TK-5)."""
        self._gate.close()
        self._tasks.close()
        try:
            async with asyncio.timeout(grace):
                await self._tasks.join()
        except TimeoutError:
            emit(self._log, "key.left_behind", keys=len(self._records))
        self._tasks.cancel_all()
        await self._tasks.join()

    def _refuse_when_full(self, key: str) -> None:
        if key in self._records:
            raise KVError(f"temporary key {key!r} is in use: draw a new one for each put")
        if len(self._records) < self._tracked:
            self._full_reported = False
            return
        oldest = min(record.began for record in self._records.values())
        age = asyncio.get_running_loop().time() - oldest
        if not self._full_reported:
            self._full_reported = True
            emit(self._log, "key.table_full", tracked=self._tracked, oldest_age=round(age, 3))
        raise TooManyKeys(f"{self._tracked} temporary keys are tracked, the oldest for {age:.1f} s: send inline")

    async def _own(self, record: _Record) -> None:
        await self._put(record)
        await record.dropped.wait()
        if record.handed_over:
            return
        if record.committed:
            await self._delete(record)
        else:
            await self._recheck(record)

    def _forget(self, record: _Record) -> None:
        del self._records[record.key]
        if not record.outcome.done():
            record.outcome.set_exception(KVError(f"stopped before the put of {record.key!r} had a result"))

    async def _put(self, record: _Record) -> None:
        assert record.value is not None, "a record begins with its value"
        try:
            async with asyncio.timeout(PUT_TIMEOUT):
                await self._kv.put(record.key, record.value, record.lease)
        except Exception as error:  # noqa: BLE001 — whatever it was, the put may still take effect
            record.committed = False
            emit(self._log, "key.unresolved", key=record.key, lease_id=record.lease.id, cause=describe(error))
            record.outcome.set_exception(KVError(f"the put of {record.key!r} failed: {describe(error)}"))
        else:
            record.committed = True
            record.outcome.set_result(None)
        finally:
            record.value = None

    async def _delete(self, record: _Record) -> None:
        while not await self._attempt(record, self._kv.delete(record.key)):
            pass

    async def _recheck(self, record: _Record) -> None:
        """Delete until the lease has ended: only then can the key appear no more."""
        while True:
            if not await self._attempt(record, self._kv.delete(record.key)):
                continue
            if not await self._may_still_appear(record):
                return
            await asyncio.sleep(RECHECK + _jitter(record))

    async def _may_still_appear(self, record: _Record) -> bool:
        try:
            async with asyncio.timeout(DELETE_TIMEOUT):
                return await self._leases.alive(record.lease)
        except Exception:  # noqa: BLE001 — not knowing counts as yes
            return True

    async def _attempt(self, record: _Record, deletion: Awaitable[bool]) -> bool:
        """Try once to delete; after a failure, wait before the next one."""
        try:
            async with asyncio.timeout(DELETE_TIMEOUT):
                await deletion
        except Exception as error:  # noqa: BLE001 — tried again whatever it was
            record.checks += 1
            emit(self._log, "key.delete_failed", key=record.key, attempt=record.checks, cause=describe(error))
            await asyncio.sleep(min(FIRST_BACKOFF * 2 ** (record.checks - 1), LAST_BACKOFF) + _jitter(record))
            return False
        record.checks = 0
        return True


def _jitter(record: _Record) -> float:
    """Return 0 to 250 ms, the same for the same key and attempt, so that many keys spread and a run can be repeated."""
    return JITTER * (zlib.crc32(f"{record.key}:{record.checks}".encode()) / 0xFFFFFFFF)


def _mark_retrieved(outcome: asyncio.Future[None]) -> None:
    """A sender that no longer waits for the result has its reasons; the owner logs failures itself."""
    if not outcome.cancelled():
        outcome.exception()
