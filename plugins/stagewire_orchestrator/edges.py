"""Edges between stages, and what can be reached along them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from stagewire import StageId

EdgeKind = Literal["batch", "chunk"]
"""``batch``: the target starts when the source ended. ``chunk``: it starts with the source and consumes meanwhile."""

Join = Literal["all", "any", "zip"]
"""How several inputs become one: all of them, the first that comes, or side by side by chunk number."""

Route = Callable[[int, StageId | None], Iterable[StageId]]
"""Chooses the successors of one output: its number from 0, and the one that the stage named (`StageOutput.to`)."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge, from one stage to another."""

    source: StageId
    target: StageId
    kind: EdgeKind = "batch"

    @property
    def name(self) -> str:
        """What logs, metrics and transports call it: ``a->b``."""
        return f"{self.source}->{self.target}"


def ancestors(edges: Iterable[Edge], stages: Iterable[StageId]) -> set[StageId]:
    """Return the stages and every stage that leads to one of them."""
    return _closure(stages, [(edge.target, edge.source) for edge in edges])


def descendants(edges: Iterable[Edge], stages: Iterable[StageId]) -> set[StageId]:
    """Return the stages and every stage that one of them leads to."""
    return _closure(stages, [(edge.source, edge.target) for edge in edges])


def optional(edges: Sequence[Edge], fork: StageId) -> set[StageId]:
    """Return the stages that may get no input, because the route at the fork may leave out what leads to them."""
    return descendants(edges, [edge.target for edge in edges if edge.source == fork and edge.kind == "batch"])


def _closure(start: Iterable[StageId], steps: Sequence[tuple[StageId, StageId]]) -> set[StageId]:
    found = set(start)
    todo = list(found)
    while todo:
        here = todo.pop()
        fresh = {there for origin, there in steps if origin == here} - found
        found |= fresh
        todo.extend(fresh)
    return found
