"""What all remote clients of one orchestrator share: its mailbox, the signs of life, the processes that it started."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stagewire import (
    BatchTransport,
    Closed,
    Delivery,
    Message,
    Permanent,
    PluginError,
    Retryable,
    Transport,
    describe,
    emit,
)
from stagewire.lifecycle import TaskRegistry
from stagewire_orchestrator.remote.client import Bound, RemoteClient
from stagewire_orchestrator.remote.launcher import Launcher
from stagewire_orchestrator.remote.liveness import Liveness
from stagewire_orchestrator.remote.names import Seat, orchestrator_mailbox, worker_mailbox
from stagewire_orchestrator.remote.post import AGAIN, Numbers, Post
from stagewire_orchestrator.remote.protocol import Bye, Hello, Report, unpack
from stagewire_orchestrator.remote.resume import Resumer

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

TELL_AFTER = 3.0
"""Seconds of waiting for a worker after which a person is told."""

FAREWELL = 2.0
"""Seconds that the last messages have to be confirmed."""


class Fleet:
    """Belongs to one event loop. It works from the first `join` until the last `leave`.

    Args:
        scope: What the names of the mailboxes begin with: the pipeline's name, or more.
        identity: The name of this orchestrator, like no other's.
        transport: What reaches the workers.
        liveness: The clocks.
        log: Where events go.
        launcher: Starts the workers; ``None`` when others do.
    """

    def __init__(
        self,
        scope: str,
        identity: str,
        transport: Transport,
        liveness: Liveness,
        *,
        log: FilteringBoundLogger,
        launcher: Launcher | None = None,
    ) -> None:
        self.id = identity
        self.resumer = Resumer()
        self._scope = scope
        self._transport = transport
        self._liveness = liveness
        self._log = log
        self._launcher = launcher
        self._members: dict[Seat, RemoteClient] = {}
        self._posts: dict[Seat, Post] = {}
        self._hellos: dict[Seat, asyncio.Future[None]] = {}
        self._told: set[Seat] = set()
        self._joined: set[Seat] = set()
        self._numbers = Numbers()
        self._tasks = TaskRegistry(f"workers of {scope!r}", log=log)
        self._begun = False

    def add(self, member: RemoteClient) -> None:
        """Take a client in; before the start."""
        self._members[member.seat] = member

    async def join(self, member: RemoteClient) -> None:
        """A client starts; the first one starts everything."""
        self._joined.add(member.seat)
        if not self._begun:
            self._begun = True
            self._begin(self._transport.batches())

    async def leave(self, member: RemoteClient) -> None:
        """A client closes; the last one says good-bye and ends what was started. Idempotent."""
        self._joined.discard(member.seat)
        if self._joined or not self._begun:
            return
        self._begun = False
        farewells = [self._farewell(post) for post in self._posts.values()]
        await asyncio.gather(*farewells)
        if self._launcher is not None:
            await self._launcher.stop()
        self._tasks.cancel_all()
        await self._tasks.drain(FAREWELL)
        for post in self._posts.values():
            post.close()

    def post(self, seat: Seat) -> Post:
        """Return what sends to whoever hosts the seat."""
        return self._posts[seat]

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a task that ends with the fleet."""
        return self._tasks.spawn(work, name=name)

    def resume(self, member: RemoteClient, bound: Bound, cause: str) -> None:
        """Have a request of a lost worker go on at its successor."""
        self._tasks.spawn(
            self.resumer.resume(member, bound, cause), name=f"resume {bound.submission.wire_id} {member.seat}"
        )

    def report_registered(self, member: RemoteClient) -> None:
        """A worker registered."""
        self._told.discard(member.seat)
        emit(self._log, "worker.registered", **_ids(member.seat), worker=member.worker)
        if self._launcher is not None:
            self._launcher.registered(member.seat)

    def report_lost(self, member: RemoteClient, cause: str) -> None:
        """A worker is gone; in order when it had nothing."""
        bound = len(member.bound)
        name = "worker.lost" if bound or cause != "it left" else "worker.left"
        fields: dict[str, Any] = {"cause": cause, "requests": bound} if name == "worker.lost" else {}
        emit(self._log, name, **_ids(member.seat), worker=member.worker, **fields)

    def _begin(self, batches: BatchTransport) -> None:
        now = self._now()
        for seat, member in self._members.items():
            member.down_since = member.heard_at = now
            post = self._posts[seat] = Post(batches, worker_mailbox(self._scope, seat))
            self._tasks.spawn(post.run(), name=f"post to {seat}")
        self._tasks.spawn(self._read(batches), name="reports of workers")
        self._tasks.spawn(self._beat(), name="signs of life")
        if self._launcher is not None:
            self._launcher.start(list(self._members), self._tasks.spawn, self._exited)

    def _exited(self, seat: Seat, how: str) -> None:
        self._members[seat].lose(how, self._now())

    async def _farewell(self, post: Post) -> None:
        post.put(Bye(orchestrator=self.id))
        await post.flush(FAREWELL)

    async def _read(self, batches: BatchTransport) -> None:
        mailbox = orchestrator_mailbox(self._scope, self.id)
        while True:
            try:
                async with batches.get_batch(mailbox, limit=256) as batch:
                    for delivery in batch:
                        self._take(delivery)
            except Retryable:
                await asyncio.sleep(AGAIN)
            except (Closed, Permanent) as error:
                for member in self._members.values():
                    member.die(PluginError(f"its worker cannot be heard: {describe(error)}"))
                return

    def _take(self, delivery: Delivery) -> None:
        report = _report(delivery.message)
        if report is None or not self._numbers.fresh(report):
            return
        member = self._members.get(Seat(report.stage, report.replica))
        if member is not None:
            member.take(report, self._now())

    async def _beat(self) -> None:
        while True:
            now = self._now()
            for member in self._members.values():
                self._greet(member, now)
                self._look(member, now)
            self.resumer.look()
            await asyncio.sleep(self._liveness.heartbeat)

    def _greet(self, member: RemoteClient, now: float) -> None:
        before = self._hellos.get(member.seat)
        if before is None or before.done():
            self._hellos[member.seat] = self._posts[member.seat].put(
                Hello(orchestrator=self.id, started=member.started)
            )
        else:
            member.heard_at = now  # the transport is away, and so nobody can be heard

    def _look(self, member: RemoteClient, now: float) -> None:
        liveness = self._liveness
        if member.worker is not None and now - member.heard_at > liveness.lost_after:
            member.lose(f"no heartbeat for {now - member.heard_at:.1f} s", now)
        if member.available.is_set():
            return
        waited = now - member.down_since
        if waited > liveness.start:
            member.die(PluginError(f"{_missing(member.seat)} within {liveness.start:g} s: {self._remedy(member.seat)}"))
        elif waited >= TELL_AFTER and member.seat not in self._told:
            self._told.add(member.seat)
            emit(self._log, "worker.awaited", **_ids(member.seat), seconds=waited, remedy=self._remedy(member.seat))

    def _remedy(self, seat: Seat) -> str:
        if self._launcher is not None and self._launcher.hosts(seat):
            return "its process does not come up; see what it wrote"
        return f"start it with `stagewire worker CONFIG --stage {seat.stage}`, with the same transport"

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


def _report(message: Message) -> Report | None:
    with suppress(Permanent):
        record = unpack(message)
        if isinstance(record, Report):
            return record
    return None


def _missing(seat: Seat) -> str:
    return f"no worker registered as replica {seat.replica} of stage {seat.stage!r}"


def _ids(seat: Seat) -> dict[str, Any]:
    return {"stage": seat.stage, "replica": seat.replica}
