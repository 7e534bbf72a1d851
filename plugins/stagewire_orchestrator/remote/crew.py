"""Builds the clients of an orchestrator some of whose stages run elsewhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from stagewire import BuildContext, StageId, Transport
from stagewire_orchestrator.clients import StageClient
from stagewire_orchestrator.config import OrchestratorOptions
from stagewire_orchestrator.door import WireId
from stagewire_orchestrator.graph import Graph
from stagewire_orchestrator.ledger import RequestState
from stagewire_orchestrator.local_client import LocalClient
from stagewire_orchestrator.remote.client import RemoteClient
from stagewire_orchestrator.remote.fleet import Fleet
from stagewire_orchestrator.remote.launcher import Launcher
from stagewire_orchestrator.remote.names import Seat
from stagewire_orchestrator.wiring import Wiring


@dataclass(frozen=True, slots=True)
class Crew:
    """The clients of an orchestrator.

    Attributes:
        graph: How the stages are connected.
        clients: By stage, and there by replica.
        wire_id: Makes the ids of requests.
        watch: Takes the ledger, once there is one.
    """

    graph: Graph
    clients: Mapping[StageId, Sequence[StageClient]]
    wire_id: WireId
    watch: Callable[[Mapping[str, RequestState]], None] = lambda _ledger: None


def mixed(options: OrchestratorOptions, context: BuildContext) -> Crew:
    """Return clients some of whose stages run elsewhere. No two orchestrators have the same ids of requests.

    Where the run starts all workers itself no two runs share a mailbox or an edge either; workers that others start
    serve every run of the pipeline.
    """
    transport = context.transport()
    identity = secrets.token_hex(6)
    shared = any(options.workers_of(name) == "external" for name in options.stages)
    scope = context.pipeline if shared else f"{context.pipeline}.{identity}"
    wiring = Wiring(options, context, scope)
    launcher = _launcher(options, context, scope)
    fleet = Fleet(scope, identity, transport, options.liveness, log=context.log, launcher=launcher)
    clients: dict[StageId, list[LocalClient | RemoteClient]] = {
        name: [_client(options, wiring, fleet, transport, Seat(name, replica)) for replica in range(block.replicas)]
        for name, block in options.stages.items()
    }
    fleet.resumer.connect(wiring.graph, clients)
    return Crew(wiring.graph, clients, lambda request, number: f"{request}#{identity}.{number}", fleet.resumer.watch)


def _client(
    options: OrchestratorOptions, wiring: Wiring, fleet: Fleet, transport: Transport, seat: Seat
) -> LocalClient | RemoteClient:
    name = str(seat.stage)
    if options.workers_of(name) == "in-process":
        return wiring.local_client(name, seat.replica, transport)
    entry = wiring.graph.nodes[name].entry
    make_input = partial(wiring.input_end, name, seat.replica, transport) if entry else None
    return RemoteClient(fleet, seat, make_input=make_input, resumable=options.resumable(name))


def _launcher(options: OrchestratorOptions, context: BuildContext, scope: str) -> Launcher | None:
    seats = [
        Seat(name, replica)
        for name, block in options.stages.items()
        if options.workers_of(name) == "local"
        for replica in range(block.replicas)
    ]
    if not seats:
        return None
    return Launcher(context.files, seats, options.liveness, scope=scope, log=context.log)
