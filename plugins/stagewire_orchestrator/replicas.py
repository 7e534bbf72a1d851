"""Replicas of stages (OR-15): a request stays with the replica it was given; the least loaded one takes the next."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from stagewire import StageId
from stagewire_orchestrator.clients import Doing, StageClient


class Replica:
    """One stage client, with what the orchestrator knows of it.

    Attributes:
        stage: The stage.
        number: Its number among the stage's replicas, from 0.
        client: The client.
        load: Requests that were given to it and have not ended.
        submitted: How many it has taken.
        outputs: How many outputs it has had.
        ended: For how many requests it has ended.
        lost: Why it can no longer be used, or ``None``.
    """

    def __init__(self, stage: StageId, number: int, client: StageClient) -> None:
        self.stage = stage
        self.number = number
        self.client = client
        self.load = 0
        self.submitted = 0
        self.outputs = 0
        self.ended = 0
        self.lost: str | None = None
        self.start = getattr(client, "start", None)
        self.close = getattr(client, "close", None)
        self.abort = getattr(client, "abort", None)
        self.credit = _plain(client, "credit")
        self._doing = _plain(client, "doing")
        self._moves = _plain(client, "moves")
        self._client_stats = _plain(client, "stats")
        self._ready = _plain(client, "ready")
        self._holds: set[object] = set()
        self._open = asyncio.Event()
        self._open.set()

    def __repr__(self) -> str:
        return f"<replica {self.number} of stage {self.stage!r}>"

    def doing(self, wire: str) -> Doing:
        """Return what the stage does for the request; ``running`` where the client does not tell."""
        found: object = self._doing(wire) if self._doing is not None else None
        if found == "starved":
            return "starved"
        return "blocked" if found == "blocked" else "running"

    def moves(self, wire: str) -> int:
        """Return how many chunks of the request came in or went out; 0 where the client does not tell."""
        moves: int = self._moves(wire) if self._moves is not None else 0
        return moves

    @property
    def ready(self) -> bool:
        """Whether it would take a request at once; true where the client does not tell."""
        return self._ready is None or bool(self._ready())

    def stats(self) -> dict[str, float]:
        """Return its counters."""
        counts = {"load": self.load, "submitted": self.submitted, "outputs": self.outputs, "ended": self.ended}
        return {**counts, "held": len(self._holds), "lost": int(self.lost is not None)}

    def client_stats(self) -> Mapping[str, Mapping[str, float]]:
        """Return what the client counts by itself, by its parts; nothing where it does not."""
        stats: object = self._client_stats() if self._client_stats is not None else None
        return stats if isinstance(stats, Mapping) else {}

    @property
    def held(self) -> bool:
        """Whether its outputs are not to be read now, because a request's client is slow."""
        return bool(self._holds)

    def hold(self, owner: object) -> None:
        """Stop reading its outputs until the owner unholds."""
        self._holds.add(owner)
        self._open.clear()

    def unhold(self, owner: object) -> None:
        """Take one hold back."""
        self._holds.discard(owner)
        if not self._holds:
            self._open.set()

    async def unheld(self) -> None:
        """Wait until nobody holds it."""
        await self._open.wait()


class Replicas:
    """All replicas of all stages.

    Args:
        stages: The clients by stage: one, or a sequence of replicas.
    """

    def __init__(self, stages: Mapping[StageId, StageClient | Sequence[StageClient]]) -> None:
        self._by_stage = {stage: _replicas(stage, clients) for stage, clients in stages.items()}
        self._lost = 0

    def __iter__(self) -> Iterator[Replica]:
        for replicas in self._by_stage.values():
            yield from replicas

    def pick(self, stage: StageId) -> Replica | None:
        """Return the least loaded replica of the stage, of those that are ready, and count the request.

        ``None`` when none is left (OR-11); where none is ready, the one that is to wait for.
        """
        usable = self._by_stage[stage]
        if self._lost:
            usable = [replica for replica in usable if replica.lost is None]
            if not usable:
                return None
        chosen = usable[0] if len(usable) == 1 else min(usable, key=_by_readiness)
        chosen.load += 1
        return chosen

    def lose(self, replica: Replica, cause: str) -> None:
        """Use a replica no more."""
        if replica.lost is None:
            replica.lost = cause
            self._lost += 1

    def exhausted(self, stages: Iterable[StageId]) -> StageId | None:
        """Return the first of the stages that has no replica left, if there is one."""
        if not self._lost:
            return None
        return next((stage for stage in stages if all(each.lost is not None for each in self._by_stage[stage])), None)

    def why_lost(self, stage: StageId) -> str:
        """Say why the stage has no replica left."""
        causes = dict.fromkeys(str(replica.lost) for replica in self._by_stage[stage])
        return f"no replica is left: {'; '.join(causes)}"


def by_stage(stages: Any) -> dict[StageId, StageClient | Sequence[StageClient]]:
    """Return the clients by stage: of a mapping as it is, of a sequence by number from 0."""
    return dict(stages.items()) if isinstance(stages, Mapping) else dict(enumerate(stages))


def _replicas(stage: StageId, clients: StageClient | Sequence[StageClient]) -> list[Replica]:
    each = clients if isinstance(clients, list | tuple) else [clients]
    if not each:
        raise ValueError(f"stage {stage!r} has no client: give it one, or a list of replicas")
    for client in each:
        if not all(callable(getattr(client, method, None)) for method in ("submit", "get_output")):
            raise TypeError(f"the client of stage {stage!r} needs the methods submit and get_output: {client!r}")
    return [Replica(stage, number, client) for number, client in enumerate(each)]


def _plain(client: StageClient, name: str) -> Callable[..., Any] | None:
    """Return an optional method that is called without being awaited; an asynchronous one of that name is another."""
    method: Callable[..., Any] | None = getattr(client, name, None)
    return None if inspect.iscoroutinefunction(method) else method


def _by_readiness(replica: Replica) -> tuple[bool, int, int]:
    return not replica.ready, replica.load, replica.number
