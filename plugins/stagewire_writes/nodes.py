"""The agents that a controller may use: those that are configured, or those that have registered (WS-14)."""

from __future__ import annotations

import asyncio

from stagewire import Clock, KVBackend
from stagewire_writes.errors import WriteError
from stagewire_writes.options import WritesOptions
from stagewire_writes.presence import Node, registered
from stagewire_writes.protocol import Ping, Pong
from stagewire_writes.remote import Remote
from stagewire_writes.routing import Routes

PING_TIMEOUT = 5.0


class Nodes(Routes):
    """Routes over the exports of a configuration. Belongs to one event loop."""

    def __init__(self, options: WritesOptions, kv: KVBackend, remote: Remote, clock: Clock) -> None:
        super().__init__(list(options.exports), self._nodes, clock, options.snapshot)
        self._options = options
        self._kv = kv
        self._remote = remote

    async def _nodes(self, export: str) -> list[Node]:
        names = self._options.exports[export].nodes
        if not names:
            return await registered(self._kv, export)
        found = await asyncio.gather(*(self._look(export, name) for name in names))
        return [node for node in found if node is not None]

    async def _look(self, export: str, name: str) -> Node | None:
        """Ask a configured agent which process it is."""
        try:
            pong = await self._remote.call(Node(export, name, ""), "ping", Ping(), Pong, timeout=PING_TIMEOUT)
        except WriteError:
            return None
        return Node(export, name, pong.instance)
