"""One lease for a whole controller, taken when it is first needed (LS-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from stagewire.errors import Closed, LeaseLost, describe
from stagewire.events import emit
from stagewire.leases.keepalive import KeepaliveActor, Registration
from stagewire.leases.policy import SHARED, KeepalivePolicy
from stagewire.logs import fallback_logger
from stagewire.spec.lease import Lease, LeaseBackend

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

DEFAULT_TTL = 180.0
"""Seconds; keys of a killed process are gone after them."""


class SharedLease:
    """Grants one lease, whatever the number of users, and keeps it until `close`. Belongs to one event loop.

    When it fails, who subscribed is told, and from then on `acquire` raises: users do without a lease, for good
    (``sticky``), or until the next `acquire` has got a new one.
    """

    def __init__(
        self,
        backend: LeaseBackend,
        actor: KeepaliveActor,
        *,
        ttl: float = DEFAULT_TTL,
        policy: KeepalivePolicy = SHARED,
        sticky: bool = True,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        policy.require(ttl)
        self._backend = backend
        self._actor = actor
        self._ttl = ttl
        self._policy = policy
        self._sticky = sticky
        self._log = log or fallback_logger()
        self._registration: Registration | None = None
        self._granting: asyncio.Task[Lease] | None = None
        self._failure: Exception | None = None
        self._listeners: list[Callable[[Lease | None, Exception], None]] = []
        self._closed = False

    @property
    def failure(self) -> Exception | None:
        """Why there is no lease any more."""
        return self._failure

    @property
    def current(self) -> Lease | None:
        """The lease, while there is a valid one."""
        return None if self._registration is None else self._registration.lease

    def subscribe(self, listener: Callable[[Lease | None, Exception], None]) -> Callable[[], None]:
        """Ask to be told of a failure: the lease that failed (``None``: it was never granted) and why.

        Returns what ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def acquire(self) -> Lease:
        """Return the lease; the first call grants it, concurrent ones share that (single-flight).

        Cancelling one caller disturbs no other. Raises `LeaseLost` when it has failed, `Closed` after `close`.
        """
        if self._closed:
            raise Closed("the shared lease was closed")
        if self._registration is not None:
            return self._registration.lease
        if self._failure is not None and self._sticky:
            raise LeaseLost(f"the shared lease failed before: {describe(self._failure)}")
        if self._granting is None:
            self._granting = asyncio.get_running_loop().create_task(self._grant(), name="shared-lease-grant")
            self._granting.add_done_callback(self._granted)
        return await asyncio.shield(self._granting)

    async def close(self) -> None:
        """Keep it alive no longer; its TTL takes what is still tied to it (TK-5). Idempotent."""
        self._closed = True
        if self._granting is not None:
            self._granting.cancel()
            await asyncio.wait([self._granting])
        if self._registration is not None:
            self._registration.unregister()
            self._registration = None

    async def _grant(self) -> Lease:
        try:
            async with asyncio.timeout(self._policy.backend_timeout):
                lease = await self._backend.grant(self._ttl)
        except Exception as error:
            self._fail(None, error)
            raise LeaseLost(f"no lease could be had: {describe(error)}") from error
        self._failure = None
        self._registration = self._actor.register(lease, self._policy, on_lost=self._fail)
        return lease

    def _granted(self, task: asyncio.Task[Lease]) -> None:
        self._granting = None
        if not task.cancelled():
            task.exception()  # each caller has been given it

    def _fail(self, lease: Lease | None, error: Exception) -> None:
        self._registration = None
        self._failure = error
        emit(self._log, "lease.lost", lease_id=None if lease is None else lease.id, cause=describe(error))
        for listener in list(self._listeners):
            listener(lease, error)
