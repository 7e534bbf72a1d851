"""The kit for testing stages, transports, backends and pipelines. Public: plugin authors use it too.

It needs neither pytest nor hypothesis; with pytest, ``stagewire.testing.pytest_plugin`` has fixtures.
"""

from stagewire.testing import _rewrite as _rewrite
from stagewire.testing.clock import Stuck, VirtualLoop, run_virtual
from stagewire.testing.context import ManualClock, StubContext, stage_context
from stagewire.testing.faults import (
    Call,
    Fault,
    FaultPlan,
    FaultyBatchTransport,
    FaultyFaces,
    FaultyTransport,
    Gate,
    with_faults,
)
from stagewire.testing.leaks import Leak, no_leaks, no_task_leaks
from stagewire.testing.suites import (
    BatchTransportSuite,
    ChunkTransportSuite,
    Ends,
    KVBackendSuite,
    LeaseBackendSuite,
    ReconnectSuite,
    StageSample,
    StageSuite,
    StoreHarness,
    Stores,
    Suite,
    TransportHarness,
    TransportLimits,
    TransportSuite,
)
from stagewire.testing.sweep import SweepResult, SweepRun, sweep_cancels

__all__ = [
    "BatchTransportSuite",
    "Call",
    "ChunkTransportSuite",
    "Ends",
    "Fault",
    "FaultPlan",
    "FaultyBatchTransport",
    "FaultyFaces",
    "FaultyTransport",
    "Gate",
    "KVBackendSuite",
    "Leak",
    "LeaseBackendSuite",
    "ManualClock",
    "ReconnectSuite",
    "StageSample",
    "StageSuite",
    "StoreHarness",
    "Stores",
    "StubContext",
    "Stuck",
    "Suite",
    "SweepResult",
    "SweepRun",
    "TransportHarness",
    "TransportLimits",
    "TransportSuite",
    "VirtualLoop",
    "no_leaks",
    "no_task_leaks",
    "run_virtual",
    "stage_context",
    "sweep_cancels",
    "with_faults",
]
