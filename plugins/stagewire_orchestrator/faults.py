"""What can be wrong with a graph; found before anything is opened, each fault with its place in the file (OR-13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from stagewire import Problem, StageId, did_you_mean
from stagewire_orchestrator.edges import Edge, Join, Route, ancestors, descendants, optional


def find_faults(
    stages: Sequence[StageId],
    edges: Sequence[Edge],
    finals: Collection[StageId],
    joins: Mapping[StageId, Join],
    routes: Mapping[StageId, Route],
) -> list[Problem]:
    """Return every fault that keeps the graph from running at all. Paths are those of the YAML file."""
    faults = [*_unknown_names(stages, edges, finals), *_repeated_edges(edges)]
    if faults:
        return faults  # what follows would only repeat them in other words
    if not finals:
        faults.append(Problem("no stage is final, so nothing would come out: name one under outputs", ("outputs",)))
    faults += find_cycles(edges)
    if not faults:
        faults += _bad_joins(stages, edges, joins)
        faults += _bad_routes(edges, joins, routes)
    return faults


def find_idle(
    stages: Sequence[StageId], edges: Sequence[Edge], finals: Collection[StageId], entry: StageId
) -> Iterator[Problem]:
    """Yield a fault for each stage that the entry does not lead to, and each whose outputs go nowhere."""
    reached = descendants(edges, [entry])
    useful = ancestors(edges, finals)
    for stage in stages:
        if stage not in reached:
            message = f"the stage is never reached: no edge leads from {entry!r} to it; add one, or remove the stage"
            yield Problem(message, ("stages", stage))
        elif stage not in useful:
            message = "its outputs go nowhere: name it under outputs, add an edge from it, or remove it"
            yield Problem(message, ("stages", stage))


def find_cycles(edges: Sequence[Edge]) -> Iterator[Problem]:
    """Yield one fault for each edge that closes a cycle, with the way round."""
    for number, edge in enumerate(edges):
        way = _way(edges[:number], edge.target, edge.source)
        if way is not None:
            text = " -> ".join(str(stage) for stage in (*way, edge.target))
            yield Problem(f"the edge closes a cycle: {text}; a request would never end", ("edges", number))


def _way(edges: Sequence[Edge], start: StageId, goal: StageId) -> list[StageId] | None:
    """Return the stages from start to goal along the edges, if there is a way."""
    origins: dict[StageId, StageId | None] = {start: None}
    todo = [start]
    while todo and goal not in origins:
        here = todo.pop(0)
        fresh = [edge.target for edge in edges if edge.source == here and edge.target not in origins]
        origins.update(dict.fromkeys(fresh, here))
        todo += fresh
    if goal not in origins:
        return None
    way: list[StageId] = []
    at: StageId | None = goal
    while at is not None:
        way.insert(0, at)
        at = origins[at]
    return way


def _unknown_names(
    stages: Collection[StageId], edges: Sequence[Edge], finals: Collection[StageId]
) -> Iterator[Problem]:
    places: list[tuple[tuple[str | int, ...], StageId]] = [
        (("edges", number, end), name) for number, edge in enumerate(edges) for end, name in _ends(edge)
    ]
    places += [(("outputs", name), name) for name in finals]
    names = [str(stage) for stage in stages]
    for path, name in places:
        if name not in stages:
            hint = did_you_mean(str(name), names) or f"; there are {', '.join(names) or 'none'}"
            yield Problem(f"there is no stage {name!r}{hint}", path)


def _ends(edge: Edge) -> tuple[tuple[str, StageId], tuple[str, StageId]]:
    return ("from", edge.source), ("to", edge.target)


def _repeated_edges(edges: Sequence[Edge]) -> Iterator[Problem]:
    seen: set[tuple[StageId, StageId]] = set()
    for number, edge in enumerate(edges):
        pair = (edge.source, edge.target)
        if pair in seen:
            yield Problem(f"there is already an edge from {edge.source!r} to {edge.target!r}", ("edges", number))
        seen.add(pair)


def _bad_joins(stages: Sequence[StageId], edges: Sequence[Edge], joins: Mapping[StageId, Join]) -> Iterator[Problem]:
    for stage in stages:
        inputs = [edge for edge in edges if edge.target == stage]
        if stage in joins and len(inputs) < 2:  # noqa: PLR2004 — a join takes two or more
            message = f"join needs two or more edges to {stage!r}, and there are {len(inputs)}: remove it, or add edges"
            yield Problem(message, ("stages", stage, "join"))
        if len({edge.kind for edge in inputs}) > 1:
            message = f"the edges to {stage!r} are of both kinds: make them all batch or all chunk"
            yield Problem(message, ("edges", edges.index(inputs[-1]), "kind"))
        elif joins.get(stage) == "zip" and inputs[0].kind == "chunk":
            yield from _stalling_zip(stage, inputs, edges)


def _stalling_zip(stage: StageId, inputs: Sequence[Edge], edges: Sequence[Edge]) -> Iterator[Problem]:
    """A zip takes its inputs in step, so no branch may wait for the end of what the other is held back by."""
    streams = [edge for edge in edges if edge.kind == "chunk"]
    in_step = {edge.source: ancestors(streams, [edge.source]) for edge in inputs}
    for edge in inputs:
        late = _behind_batches(edge.source, edges)
        for other in inputs:
            forks = late & in_step[other.source]
            if other is not edge and forks:
                message = (
                    f"the zip at {stage!r} would stall: {edge.source!r} starts only when {min(map(str, forks))!r} has"
                    f" ended, and that is held back by {other.source!r}; use chunk edges on both branches"
                )
                yield Problem(message, ("edges", edges.index(edge)))


def _behind_batches(stage: StageId, edges: Sequence[Edge]) -> set[StageId]:
    """Return the stages from which a way with at least one batch edge leads to the stage."""
    streams = [edge for edge in edges if edge.kind == "chunk"]
    front = ancestors(streams, [stage])
    batches = {edge.source for edge in edges if edge.kind == "batch" and edge.target in front}
    return ancestors(edges, batches)


def _bad_routes(
    edges: Sequence[Edge], joins: Mapping[StageId, Join], routes: Mapping[StageId, Route]
) -> Iterator[Problem]:
    successors = Counter(edge.source for edge in edges)
    inputs = Counter(edge.target for edge in edges)
    for stage in routes:
        if successors[stage] < 2:  # noqa: PLR2004 — there must be something to choose
            message = f"route needs two or more edges from {stage!r}, and there are {successors[stage]}: remove it"
            yield Problem(message, ("stages", stage, "route"))
            continue
        for number, edge in enumerate(edges):
            if edge.source in optional(edges, stage) and edge.kind == "chunk" and inputs[edge.target] > 1:
                message = f"{edge.source!r} may be left out by the route at {stage!r}: make the edge batch"
                yield Problem(message, ("edges", number, "kind"))
        for join in _zips_behind(stage, edges, joins):
            message = f"the route at {stage!r} gives each branch other chunks, which cannot be zipped: join all or any"
            yield Problem(message, ("stages", join, "join"))


def _zips_behind(fork: StageId, edges: Sequence[Edge], joins: Mapping[StageId, Join]) -> Iterator[StageId]:
    branches = [descendants(edges, [edge.target]) for edge in edges if edge.source == fork]
    for stage, join in joins.items():
        if join == "zip" and sum(stage in branch for branch in branches) > 1:
            yield stage
