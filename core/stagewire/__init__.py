"""stagewire wires stages into pipelines. Everything that a plugin may use is exported here."""

from importlib import import_module
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from stagewire.app import App
    from stagewire.metrics import register_metrics
    from stagewire.registry import Catalog

__version__ = "0.1.0"

_LATE = {"App": "stagewire.app", "Catalog": "stagewire.registry", "register_metrics": "stagewire.metrics"}
"""What programs use and plugins do not: loaded when it is first asked for, since asyncio and discovery take time."""


def __getattr__(name: str) -> object:
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
