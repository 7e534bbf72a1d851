"""Who serves which export: agents register under a lease, and controllers look there (WS-14)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagewire import Clock, CodecError, KVBackend, KVError, Lease, LeaseBackend, LeaseLost, describe, emit
from stagewire.codec import decode, encode, join
from stagewire.leases import GENERAL, KeepaliveActor, Registration

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

TTL = 15.0
"""Seconds after which a killed agent is no longer listed."""

AGAIN = 1.0
PREFIX = "writes-agent-"


def mailbox_of(export: str, node: str, kind: str) -> str:
    """Return the name of an agent's mailbox: ``control`` for what is answered soon, ``data`` for what may wait."""
    return f"writes.{export}.{node}.{kind}"


@dataclass(frozen=True, slots=True)
class Node:
    """An agent as it is known: its name, and the process that serves it (WS-10)."""

    export: str
    name: str
    instance: str


class Presence:
    """Keeps an agent registered from `start` to `close`. Belongs to one event loop.

    A lease that is lost is replaced; meanwhile the agent serves on, and whoever knows it still finds it.
    """

    def __init__(
        self, node: Node, kv: KVBackend, leases: LeaseBackend, *, clock: Clock, log: FilteringBoundLogger
    ) -> None:
        self._node = node
        self._kv = kv
        self._leases = leases
        self._log = log
        self._actor = KeepaliveActor(leases, clock=clock, log=log)
        self._registration: Registration | None = None
        self._renewing: asyncio.Task[None] | None = None

    @property
    def key(self) -> str:
        """The key under which the agent is found."""
        return f"{PREFIX}{self._node.export}-{self._node.name}"

    async def start(self) -> None:
        """Register; when that fails, it is tried again beside the work."""
        if not await self._register():
            self._renew()

    async def close(self) -> None:
        """Be no longer found. What cannot be removed ends with the lease. Idempotent."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        registration, self._registration = self._registration, None
        if registration is None:
            return
        registration.unregister()
        try:
            async with asyncio.timeout(AGAIN):
                await self._leases.revoke(registration.lease)
        except (KVError, LeaseLost, TimeoutError):
            return

    async def _register(self) -> bool:
        value = join(encode({"node": self._node.name, "instance": self._node.instance}))
        try:
            lease = await self._leases.grant(TTL)
            await self._kv.put(self.key, value, lease)
        except (KVError, LeaseLost) as error:
            emit(self._log, "agent.unregistered", cause=describe(error))
            return False
        self._registration = self._actor.register(lease, GENERAL, on_lost=self._lost)
        return True

    def _lost(self, _lease: Lease, error: Exception) -> None:
        self._registration = None
        emit(self._log, "agent.unregistered", cause=describe(error))
        self._renew()

    def _renew(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self._register_again(), name="agent-registration")

    async def _register_again(self) -> None:
        while True:
            await asyncio.sleep(AGAIN)
            if await self._register():
                return


async def registered(kv: KVBackend, export: str) -> list[Node]:
    """Return the agents that are registered for an export, in the order of their names. Raises `KVError`."""
    prefix = f"{PREFIX}{export}-"
    found = [await kv.get(key) for key in await kv.keys(prefix)]
    nodes: list[Node] = []
    for holder in found:
        if holder is not None:
            with holder:
                nodes += _nodes(export, holder.data)
    return sorted(nodes, key=lambda node: node.name)


def _nodes(export: str, value: memoryview) -> Iterable[Node]:
    try:
        content: Any = decode(value)
        return [Node(export, str(content["node"]), str(content["instance"]))]
    except (CodecError, KeyError, TypeError):
        return []
