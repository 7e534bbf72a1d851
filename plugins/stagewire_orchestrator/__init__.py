"""stagewire_orchestrator: carries requests across the stages of a graph; the pipeline kind ``orchestrator``."""

from stagewire_orchestrator.clients import Doing, ForwardFn, PayloadFn, StageClient, Submission
from stagewire_orchestrator.edges import Edge, EdgeKind, Join, Route
from stagewire_orchestrator.errors import RequestRefused
from stagewire_orchestrator.graph import Graph, line
from stagewire_orchestrator.options import Clocks, Limits
from stagewire_orchestrator.orchestrator import Orchestrator
from stagewire_orchestrator.outputs import OrchOutput, StageOutput, Terminal

__all__ = [
    "Clocks",
    "Doing",
    "Edge",
    "EdgeKind",
    "ForwardFn",
    "Graph",
    "Join",
    "Limits",
    "OrchOutput",
    "Orchestrator",
    "PayloadFn",
    "RequestRefused",
    "Route",
    "StageClient",
    "StageOutput",
    "Submission",
    "Terminal",
    "line",
]
