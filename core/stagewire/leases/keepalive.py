"""One task keeps many leases alive: a heap of due times and a bounded set of operations under way (LS-2).

A registration is the exact generation of a lease. Unregistering it lets an operation already under way end and keeps
that from putting the lease back (LS-4). A lease counts as lost for its holder when the backend says so, when its
policy gives it up, or when its local validity ends, which is counted from before the last successful request was sent
and so is over before the backend may end it; the loss is pushed to the holder.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagewire.errors import LeaseLost, describe
from stagewire.events import emit
from stagewire.leases.policy import KeepalivePolicy
from stagewire.logs import fallback_logger
from stagewire.spec.lease import Lease, LeaseBackend
from stagewire.spec.provider import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

OnLost = Callable[[Lease, Exception], None]
"""Takes a lease that is lost, and why; called on the event loop, must return at once."""


class Registration:
    """One lease generation that is being kept alive. Read ``lease`` anew before each use: each renewal changes it."""

    def __init__(self, actor: KeepaliveActor, lease: Lease, policy: KeepalivePolicy, on_lost: OnLost) -> None:
        self.lease = lease
        self.policy = policy
        self.failures = 0
        self._actor = actor
        self._on_lost = on_lost
        self._active = True
        self._reported_at = -float("inf")

    @property
    def active(self) -> bool:
        """Whether the lease is still being kept alive."""
        return self._active

    def unregister(self) -> None:
        """Keep this generation alive no longer. Idempotent; the lease itself runs on until its TTL ends."""
        self._active = False
        self._actor.forget(self)

    def lose(self, cause: Exception) -> None:
        """Tell the holder that the lease is lost, once."""
        if self._active:
            self.unregister()
            self._on_lost(self.lease, cause)

    def may_report(self, now: float) -> bool:
        """Return whether a failure may be reported now, and count it as reported."""
        if now - self._reported_at < self.policy.report_every:
            return False
        self._reported_at = now
        return True


@dataclass(slots=True, eq=False)
class _Operation:
    registration: Registration
    task: asyncio.Task[Lease]
    deadline: float
    overdue: bool = False


@dataclass(slots=True)
class KeepaliveStats:
    """What an actor has done; lateness in seconds, of the loop (waking up) and of keepalives (starting)."""

    renewals: int = 0
    failures: int = 0
    lost: int = 0
    runs: int = 0
    loop_lateness: float = 0.0
    renewal_lateness: float = 0.0


class KeepaliveActor:
    """Keeps the registered leases alive. Belongs to one event loop.

    The actor's task ends when nothing is registered, and the next registration starts one again (LS-6).

    Args:
        backend: Where the leases are.
        clock: The clock of `Lease.expires_at`.
        log: For the events ``lease.*``.
        random_source: For the jitter.
    """

    def __init__(
        self,
        backend: LeaseBackend,
        *,
        clock: Clock,
        log: FilteringBoundLogger | None = None,
        random_source: Callable[[], float] = random.random,
    ) -> None:
        self.stats = KeepaliveStats()
        self._backend = backend
        self._clock = clock
        self._log = log or fallback_logger()
        self._random = random_source
        self._registered: set[Registration] = set()
        self._heap: list[tuple[float, int, Registration, Callable[[Registration, float], None]]] = []
        self._waiting: deque[Registration] = deque()
        self._numbers = itertools.count()
        self._under_way: dict[asyncio.Task[Lease], _Operation] = {}
        self._busy: Counter[KeepalivePolicy] = Counter()
        self._waker: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._registered)

    @property
    def running(self) -> bool:
        """Whether the actor's task is running."""
        return self._task is not None and not self._task.done()

    @property
    def under_way(self) -> int:
        """How many operations have not ended."""
        return len(self._under_way)

    def register(self, lease: Lease, policy: KeepalivePolicy, *, on_lost: OnLost) -> Registration:
        """Keep a lease alive from now on. Raises `TtlTooShort`."""
        policy.require(lease.ttl)
        registration = Registration(self, lease, policy, on_lost)
        self._registered.add(registration)
        self._schedule(registration, self._interval(registration))
        self._watch_validity(registration)
        if not self.running:
            self.stats.runs += 1
            self._task = asyncio.get_running_loop().create_task(self._run(), name="lease-keepalive")
        return registration

    def forget(self, registration: Registration) -> None:
        """Drop a registration; used by `Registration.unregister`."""
        self._registered.discard(registration)
        self._wake()

    async def close(self) -> None:
        """Unregister everything, end the operations under way and the actor's task. Idempotent."""
        for registration in list(self._registered):
            registration.unregister()
        for task in self._under_way:
            task.cancel()
        tasks = [*self._under_way, *([self._task] if self._task is not None else [])]
        if tasks:
            await asyncio.wait(tasks)

    def _interval(self, registration: Registration) -> float:
        policy = registration.policy
        return policy.interval(registration.lease.ttl) + policy.jitter * self._random()

    def _schedule(self, registration: Registration, delay: float) -> None:
        self._push(delay, registration, self._make_due)

    def _watch_validity(self, registration: Registration) -> None:
        self._push(registration.lease.expires_at - self._clock(), registration, self._lose_if_expired)

    def _push(self, delay: float, registration: Registration, act: Callable[[Registration, float], None]) -> None:
        when = asyncio.get_running_loop().time() + delay
        heapq.heappush(self._heap, (when, next(self._numbers), registration, act))
        self._wake()

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    async def _run(self) -> None:
        while self._registered or self._under_way:
            self._act_on_due()
            self._start_waiting()
            await self._wait()
            self._collect()
        self._heap.clear()
        self._waiting.clear()

    def _act_on_due(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._heap and self._heap[0][0] <= now:
            when, _number, registration, act = heapq.heappop(self._heap)
            if registration in self._registered:
                act(registration, now - when)

    def _make_due(self, registration: Registration, late: float) -> None:
        self.stats.renewal_lateness = max(self.stats.renewal_lateness, late)
        self._waiting.append(registration)

    def _lose_if_expired(self, registration: Registration, _late: float) -> None:
        """Act on the end of a validity, unless the lease was renewed since that was noted."""
        lease = registration.lease
        if lease.expires_at <= self._clock():
            self.stats.lost += 1
            registration.lose(LeaseLost(f"lease {lease.id} was not kept alive in time: its validity ended here"))

    def _start_waiting(self) -> None:
        blocked: deque[Registration] = deque()
        while self._waiting:
            registration = self._waiting.popleft()
            if registration not in self._registered:
                continue
            if self._busy[registration.policy] < registration.policy.concurrency:
                self._start(registration)
            else:
                blocked.append(registration)
        self._waiting = blocked

    def _start(self, registration: Registration) -> None:
        loop = asyncio.get_running_loop()
        self._busy[registration.policy] += 1
        task = loop.create_task(self._operate(registration), name=f"lease-keepalive-{registration.lease.id}")
        self._under_way[task] = _Operation(registration, task, loop.time() + registration.policy.timeout)

    async def _operate(self, registration: Registration) -> Lease:
        async with asyncio.timeout(registration.policy.backend_timeout):
            return await self._backend.keepalive(registration.lease)

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        deadlines = [operation.deadline for operation in self._under_way.values() if not operation.overdue]
        wake_at = min([*deadlines, *([self._heap[0][0]] if self._heap else [])], default=None)
        self._waker = loop.create_future()
        timeout = None if wake_at is None else max(0.0, wake_at - loop.time())
        awaited: list[asyncio.Future[Any]] = [self._waker, *self._under_way]
        await asyncio.wait(awaited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if wake_at is not None:
            self.stats.loop_lateness = max(self.stats.loop_lateness, loop.time() - wake_at)

    def _collect(self) -> None:
        now = asyncio.get_running_loop().time()
        for operation in list(self._under_way.values()):
            if operation.task.done():
                del self._under_way[operation.task]
                self._busy[operation.registration.policy] -= 1
                self._conclude(operation)
            elif operation.deadline <= now and not operation.overdue:
                operation.overdue = True
                operation.task.cancel()
                self._fail(operation.registration, TimeoutError("no answer in time"), retry=False)

    def _conclude(self, operation: _Operation) -> None:
        registration, task = operation.registration, operation.task
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if registration not in self._registered:
            return
        if operation.overdue:
            self._retry(registration)
        elif error is None:
            self.stats.renewals += 1
            registration.failures = 0
            registration.lease = task.result()
            self._schedule(registration, self._interval(registration))
            self._watch_validity(registration)
        elif isinstance(error, LeaseLost):
            self.stats.lost += 1
            registration.lose(error)
        else:
            self._fail(registration, error, retry=True)

    def _fail(self, registration: Registration, error: BaseException, *, retry: bool) -> None:
        if registration not in self._registered:
            return
        self.stats.failures += 1
        registration.failures += 1
        lease = registration.lease
        if registration.may_report(asyncio.get_running_loop().time()):
            emit(
                self._log,
                "lease.keepalive_failed",
                lease_id=lease.id,
                failures=registration.failures,
                cause=describe(error),
            )
        if registration.policy.retry_after is None:
            self.stats.lost += 1
            registration.lose(LeaseLost(f"lease {lease.id} could not be kept alive: {describe(error)}"))
        elif retry:
            self._retry(registration)

    def _retry(self, registration: Registration) -> None:
        if registration.policy.retry_after is not None:
            self._schedule(registration, registration.policy.retry_after)
