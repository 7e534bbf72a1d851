"""Which agent takes the next file: round-robin over those of the export, from a snapshot (WS-14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from stagewire import Clock, KVError
from stagewire_writes.errors import NoAgent, WriteError
from stagewire_writes.presence import Node

Ask = Callable[[str], Awaitable[Sequence[Node]]]
"""Returns the agents that serve an export now; asks the registry."""


@dataclass(slots=True)
class _Snapshot:
    nodes: list[Node] = field(default_factory=list)
    taken_at: float = -float("inf")
    turn: int = 0


class Routes:
    """Chooses agents. Belongs to one event loop.

    Args:
        exports: The exports that there are.
        ask: Asks the registry; called only when the snapshot is stale or a node is gone.
        clock: For staleness.
        fresh: Seconds for which a snapshot is good.
    """

    def __init__(self, exports: Sequence[str], ask: Ask, clock: Clock, fresh: float) -> None:
        self._snapshots = {name: _Snapshot() for name in exports}
        self._ask = ask
        self._clock = clock
        self._fresh = fresh
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def choose(self, export: str) -> Node:
        """Return the next agent of an export.

        Raises:
            NoAgent: There is none, or no such export.
        """
        snapshot = self._snapshots.get(export)
        if snapshot is None:
            known = ", ".join(sorted(self._snapshots))
            raise NoAgent(f"there is no export {export!r}: the configuration has {known}")
        if self._clock() - snapshot.taken_at > self._fresh or not snapshot.nodes:
            await self._refresh(export)
        if not snapshot.nodes:
            raise NoAgent(
                f"no agent serves export {export!r}: start one with `stagewire agent CONFIG --export {export}`"
            )
        snapshot.turn = (snapshot.turn + 1) % len(snapshot.nodes)
        return snapshot.nodes[snapshot.turn]

    def gone(self, node: Node) -> None:
        """Take an agent that does not answer out of the snapshot, and look again before the next choice."""
        snapshot = self._snapshots[node.export]
        snapshot.nodes = [each for each in snapshot.nodes if each != node]
        snapshot.taken_at = -float("inf")

    def close(self) -> None:
        """Ask no more."""
        for task in self._asking.values():
            task.cancel()

    async def _refresh(self, export: str) -> None:
        task = self._asking.get(export)
        if task is None:
            task = self._asking[export] = asyncio.get_running_loop().create_task(self._take(export))
            task.add_done_callback(lambda _task: self._asking.pop(export))
        await asyncio.shield(task)

    async def _take(self, export: str) -> None:
        snapshot = self._snapshots[export]
        try:
            found = list(await self._ask(export))
        except (KVError, WriteError) as error:
            if not snapshot.nodes:
                raise NoAgent(f"the agents of export {export!r} cannot be found out: {error}") from error
            return
        snapshot.nodes = found
        snapshot.taken_at = self._clock()
