"""The sections of a file with ``pipeline: orchestrator``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ByteSize, ConfigDict, Field, PositiveInt

from stagewire import Options, StageBlock, StageId
from stagewire_orchestrator.edges import Edge, EdgeKind, Join, Route
from stagewire_orchestrator.options import MIB, Clocks, EdgeLimits, Limits
from stagewire_orchestrator.remote.liveness import Liveness
from stagewire_orchestrator.routes import RouteName, make_route

Workers = Literal["in-process", "local", "external"]
"""Where a stage runs: here, in child processes of this one, or wherever somebody starts `stagewire worker`."""

Format = Literal["auto", "text", "jsonl", "bytes", "wav"]


IDEMPOTENT = "idempotent"
"""The capability of a stage that may take an input again, and then puts out the same for it."""


class OrchestratedStage(StageBlock):
    """One stage: ``use`` chooses it, the keys below say how it takes part, all others are its own options."""

    replicas: PositiveInt = Field(1, description="How many of it there are; a request stays with one of them.")
    join: Join | None = Field(
        None,
        description="How several inputs become one: all of them (the default), the first to come, or side by side.",
    )
    route: RouteName | None = Field(
        None,
        description="How its outputs part, where there are several edges: copy gives every edge each chunk (default),"
        " round-robin gives each chunk to the next edge in turn, named gives it to the edge that the stage names.",
    )
    workers: Workers | None = Field(None, description="Where it runs, if not where the pipeline's stages do.")
    idempotent: bool | None = Field(
        None,
        description="Whether what it puts out for an input depends on that input alone, so that another worker may go"
        " on with a request. By default as the stage itself declares it.",
    )
    final: bool = Field(default=False, description="Whether its outputs go to the client, although no file takes them.")

    @property
    def repeatable(self) -> bool:
        """Whether it may take an input again."""
        return IDEMPOTENT in self.provider.capabilities if self.idempotent is None else self.idempotent


class EdgeBlock(EdgeLimits):
    """One edge between two stages."""

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from", description="The stage whose chunks it carries.")
    target: str = Field(alias="to", description="The stage that takes them.")
    kind: EdgeKind = Field(
        "batch",
        description="batch: the target starts when the source has ended, with all that it put out."
        " chunk: it starts at the same time and takes each chunk as it comes.",
    )

    def edge(self) -> Edge:
        """Return it as the graph has it."""
        return Edge(self.source, self.target, self.kind)


class OutputBlock(Options):
    """A file for what one stage puts out; naming a stage here makes it a final one."""

    file: str = Field(min_length=1, description="The file's name, in the directory that --output names.")
    format: Format = Field(
        "auto",
        description="text: a line for each chunk. jsonl: a line of JSON for each chunk. bytes: the chunks as they are."
        " wav: 16-bit mono sound. auto: by the ending of the file's name, else by the first chunk.",
    )
    rate: PositiveInt | None = Field(None, le=768_000, description="Samples a second; for wav, which needs it.")


class PipelineLimits(Limits):
    """The bounds, with defaults that keep a run's memory small."""

    queued_outputs: PositiveInt = Field(64, description="Outputs of one request that may wait for the client.")
    queued_bytes: ByteSize = Field(
        ByteSize(4 * MIB), gt=0, description="Bytes of one request that may wait for the client."
    )


class OrchestratorOptions(Options):
    """``stages``, ``edges``, ``outputs``, ``limits`` and ``clocks``."""

    stages: dict[str, OrchestratedStage] = Field(min_length=1, description="The stages, by name.")
    edges: tuple[EdgeBlock, ...] = Field((), description="How they are connected.")
    workers: Workers = Field(
        "in-process",
        description="Where the stages run: in-process; local, in processes that the run starts itself; or external,"
        " wherever `stagewire worker` is started.",
    )
    liveness: Liveness = Field(default_factory=Liveness, description="When a silent worker counts as gone.")
    outputs: dict[str, OutputBlock] = Field(
        default_factory=dict, description="The files, by the stage that fills them."
    )
    limits: PipelineLimits = Field(default_factory=PipelineLimits, description="How much is held at once.")
    clocks: Clocks = Field(default_factory=Clocks, description="How long a request may take.")

    def workers_of(self, stage: str) -> Workers:
        """Return where a stage runs."""
        return self.stages[stage].workers or self.workers

    def resumable(self, stage: str) -> bool:
        """Return whether a request may go on at another worker of the stage.

        Its inputs and outputs must then be countable: one chunk edge into it at most, and no route behind it.
        """
        block = self.stages[stage]
        sources = sum(edge.target == stage and edge.kind == "chunk" for edge in self.edges)
        return self.workers_of(stage) != "in-process" and block.repeatable and sources <= 1 and block.route is None

    def graph_edges(self) -> list[Edge]:
        """Return the edges as the graph has them, in the order of the file."""
        return [block.edge() for block in self.edges]

    def finals(self) -> list[StageId]:
        """Return the final stages: those that ``outputs`` names, and those that say so."""
        return list(dict.fromkeys([*self.outputs, *(name for name, block in self.stages.items() if block.final)]))

    def joins(self) -> dict[StageId, Join]:
        """Return the joins that are written."""
        return {name: block.join for name, block in self.stages.items() if block.join is not None}

    def routes(self) -> Mapping[StageId, Route]:
        """Return the routes that are written and do not copy."""
        routes: dict[StageId, Route] = {}
        for name, block in self.stages.items():
            targets = [edge.target for edge in self.edges if edge.source == name]
            route = make_route(block.route, name, targets) if block.route is not None else None
            if route is not None:
                routes[name] = route
        return routes

    def entry(self) -> str:
        """Return the stage that takes the prompt: the first that no edge leads to."""
        targets = {edge.target for edge in self.edges}
        return next((name for name in self.stages if name not in targets), next(iter(self.stages)))
