"""The faults of a configuration that its model cannot see; each with its place in the file (OR-13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from stagewire import Problem, StageId
from stagewire_orchestrator.config import OrchestratorOptions, OutputBlock
from stagewire_orchestrator.faults import find_faults, find_idle
from stagewire_orchestrator.formats import format_of
from stagewire_orchestrator.options import EdgeLimits

_ROLE = "csp."


def check(options: OrchestratorOptions, _catalog: object) -> Iterable[Problem]:
    """Yield what is wrong with the graph, with the stages as parts of it, and with the files."""
    graph = list(_check_graph(options))
    yield from graph
    yield from _check_edges(options)
    yield from _check_stages(options)
    yield from _check_outputs(options)
    yield from _compare_rates(options)  # last, for options that are at fault end the check


def _check_graph(options: OrchestratorOptions) -> Iterator[Problem]:
    stages: list[StageId] = list(options.stages)
    edges, finals = options.graph_edges(), options.finals()
    joins = options.joins()
    routes = {} if _dangling(options) else options.routes()
    faults = find_faults(stages, edges, finals, joins, routes)
    yield from faults
    if not faults:
        yield from find_idle(stages, edges, finals, options.entry())


def _check_edges(options: OrchestratorOptions) -> Iterator[Problem]:
    """A batch edge carries one thing once: what bounds a chunk edge means nothing there."""
    for number, edge in enumerate(options.edges):
        if edge.kind == "batch":
            for name in sorted(edge.model_fields_set & EdgeLimits.model_fields.keys()):
                message = f"only a chunk edge has {name}: remove it, or make the edge 'kind: chunk'"
                yield Problem(message, ("edges", number, name))


def _dangling(options: OrchestratorOptions) -> bool:
    return any(name not in options.stages for edge in options.edges for name in (edge.source, edge.target))


def _check_stages(options: OrchestratorOptions) -> Iterator[Problem]:
    for name, block in options.stages.items():
        roles = sorted(word for word in block.provider.capabilities if word.startswith(_ROLE))
        if roles:
            message = f"{block.use!r} is the role {roles[0]} of a csp pipeline, and no stage of an orchestrator"
            yield Problem(message, ("stages", name, "use"))
        outgoing = sum(edge.source == name for edge in options.edges)
        if block.route == "copy" and outgoing < 2:  # noqa: PLR2004 — there must be something to choose
            message = f"route needs two or more edges from {name!r}, and there are {outgoing}: remove it"
            yield Problem(message, ("stages", name, "route"))


def _check_outputs(options: OrchestratorOptions) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for stage, block in options.outputs.items():
        path = PurePath(block.file)
        if path.is_absolute() or ".." in path.parts:
            message = "the file must lie in the output directory: give a name, or a relative path without .."
            yield Problem(message, ("outputs", stage, "file"))
        other = taken.setdefault(str(path), stage)
        if other != stage:
            yield Problem(f"the output of {other!r} goes to the same file", ("outputs", stage, "file"))
        yield from _check_rate(stage, block)


def _check_rate(stage: str, block: OutputBlock) -> Iterator[Problem]:
    wav = format_of(block.file, block.format) == "wav"
    if wav and block.rate is None:
        yield Problem("a wav file needs a rate: the samples a second that the stage makes", ("outputs", stage, "rate"))
    if not wav and block.rate is not None:
        yield Problem("only a wav file has a rate: remove it", ("outputs", stage, "rate"))


def _compare_rates(options: OrchestratorOptions) -> Iterator[Problem]:
    """Compare each wav file's rate with the one at which the stage makes sound, if its options have a ``rate``."""
    for name, output in options.outputs.items():
        block = options.stages.get(name)
        own = getattr(block.options, "rate", None) if block is not None and output.rate is not None else None
        if isinstance(own, int) and own != output.rate:
            message = f"the stage {name!r} makes {own} samples a second: give both the same rate"
            yield Problem(message, ("outputs", name, "rate"))
