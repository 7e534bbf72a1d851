"""stagewire wires stages into pipelines. Everything that a plugin may use is exported here.

Each name's module is loaded when the name is first asked for: a program that uses few of them starts soon.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewire.app import App
    from stagewire.config.models import KVBlock, LeaseBlock, LoggingOptions, StageBlock, TransportBlock, UseBlock
    from stagewire.errors import (
        ChunkExpired,
        Closed,
        CodecError,
        ConfigError,
        KVError,
        LeaseLost,
        Location,
        Permanent,
        PluginError,
        Problem,
        RequestFailed,
        Retryable,
        SessionError,
        StagewireError,
        StillHeld,
        TransportError,
        TransportFull,
        bounded,
        describe,
    )
    from stagewire.events import Event, emit
    from stagewire.holder import ViewHolder
    from stagewire.logs import fallback_logger, make_logger
    from stagewire.metrics import register_metrics
    from stagewire.registry import Catalog
    from stagewire.spec.hooks import hookimpl
    from stagewire.spec.kv import MAX_VALUE, Buffer, Holder, KVBackend
    from stagewire.spec.lease import Lease, LeaseBackend
    from stagewire.spec.metrics import Measured, Metric
    from stagewire.spec.pipeline import (
        INPUT_DIRECTORY,
        Failure,
        InputStream,
        Job,
        OutputFile,
        Pipeline,
        Progress,
        RunReport,
    )
    from stagewire.spec.probe import HasTraffic, Probing, Traffic, traffic_of
    from stagewire.spec.provider import BuildContext, Clock, Extra, Factory, Options, Provider
    from stagewire.spec.stage import Consumer, Producer, Requester, Stage, StageContext, StageRequest, To
    from stagewire.spec.transport import (
        DEAD_DELIVERIES,
        DEAD_MAILBOX,
        DEAD_REASON,
        DEAD_SUFFIX,
        INLINE,
        TRANSPORT_STATS,
        BatchTransport,
        ChunkKey,
        ChunkLink,
        ChunkMessage,
        ChunkTransport,
        Delivery,
        Message,
        StageId,
        Transport,
    )
    from stagewire.stages import BlockingRequest, stage_provider
    from stagewire.suggest import did_you_mean

__version__ = "0.1.0"

_NAMES = {
    "stagewire.app": "App",
    "stagewire.config.models": "KVBlock LeaseBlock LoggingOptions StageBlock TransportBlock UseBlock",
    "stagewire.errors": (
        "ChunkExpired Closed CodecError ConfigError KVError LeaseLost Location Permanent PluginError Problem "
        "RequestFailed Retryable SessionError StagewireError StillHeld TransportError TransportFull bounded "
        "describe"
    ),
    "stagewire.events": "Event emit",
    "stagewire.holder": "ViewHolder",
    "stagewire.logs": "fallback_logger make_logger",
    "stagewire.metrics": "register_metrics",
    "stagewire.registry": "Catalog",
    "stagewire.spec.hooks": "hookimpl",
    "stagewire.spec.kv": "MAX_VALUE Buffer Holder KVBackend",
    "stagewire.spec.lease": "Lease LeaseBackend",
    "stagewire.spec.metrics": "Measured Metric",
    "stagewire.spec.pipeline": "INPUT_DIRECTORY Failure InputStream Job OutputFile Pipeline Progress RunReport",
    "stagewire.spec.probe": "HasTraffic Probing Traffic traffic_of",
    "stagewire.spec.provider": "BuildContext Clock Extra Factory Options Provider",
    "stagewire.spec.stage": "Consumer Producer Requester Stage StageContext StageRequest To",
    "stagewire.spec.transport": (
        "DEAD_DELIVERIES DEAD_MAILBOX DEAD_REASON DEAD_SUFFIX INLINE TRANSPORT_STATS BatchTransport ChunkKey "
        "ChunkLink ChunkMessage ChunkTransport Delivery Message StageId Transport"
    ),
    "stagewire.stages": "BlockingRequest stage_provider",
    "stagewire.suggest": "did_you_mean",
}
"""The names that each module brings, as imported above for type checkers."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "DEAD_DELIVERIES",
    "DEAD_MAILBOX",
    "DEAD_REASON",
    "DEAD_SUFFIX",
    "INLINE",
    "INPUT_DIRECTORY",
    "MAX_VALUE",
    "TRANSPORT_STATS",
    "App",
    "BatchTransport",
    "BlockingRequest",
    "Buffer",
    "BuildContext",
    "Catalog",
    "ChunkExpired",
    "ChunkKey",
    "ChunkLink",
    "ChunkMessage",
    "ChunkTransport",
    "Clock",
    "Closed",
    "CodecError",
    "ConfigError",
    "Consumer",
    "Delivery",
    "Event",
    "Extra",
    "Factory",
    "Failure",
    "HasTraffic",
    "Holder",
    "InputStream",
    "Job",
    "KVBackend",
    "KVBlock",
    "KVError",
    "Lease",
    "LeaseBackend",
    "LeaseBlock",
    "LeaseLost",
    "Location",
    "LoggingOptions",
    "Measured",
    "Message",
    "Metric",
    "Options",
    "OutputFile",
    "Permanent",
    "Pipeline",
    "PluginError",
    "Probing",
    "Problem",
    "Producer",
    "Progress",
    "Provider",
    "RequestFailed",
    "Requester",
    "Retryable",
    "RunReport",
    "SessionError",
    "Stage",
    "StageBlock",
    "StageContext",
    "StageId",
    "StageRequest",
    "StagewireError",
    "StillHeld",
    "To",
    "Traffic",
    "Transport",
    "TransportBlock",
    "TransportError",
    "TransportFull",
    "UseBlock",
    "ViewHolder",
    "__version__",
    "bounded",
    "describe",
    "did_you_mean",
    "emit",
    "fallback_logger",
    "hookimpl",
    "make_logger",
    "register_metrics",
    "stage_provider",
    "traffic_of",
]
