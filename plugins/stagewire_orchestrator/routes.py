"""The routes that a file can name: how the outputs of a stage part (OR-13)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from stagewire import StageId
from stagewire_orchestrator.edges import Route

RouteName = Literal["copy", "round-robin", "named"]


def make_route(name: RouteName, stage: StageId, targets: Sequence[StageId]) -> Route | None:
    """Return the route of a stage with these successors; ``None`` for the copy to all, which needs no choice."""
    if name == "round-robin":
        return lambda number, _to: (targets[number % len(targets)],)
    if name == "named":
        return _named(stage, targets)
    return None


def _named(stage: StageId, targets: Sequence[StageId]) -> Route:
    known = ", ".join(repr(target) for target in targets)

    def route(_number: int, to: StageId | None) -> Iterable[StageId]:
        if to is None or to not in targets:
            what = "names no successor" if to is None else f"names {to!r}, which is none of its successors"
            raise ValueError(f'a chunk of stage {stage!r} {what}: yield To("name", chunk) with one of {known}')
        return (to,)

    return route
