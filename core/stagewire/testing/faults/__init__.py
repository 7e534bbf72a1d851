"""Transports that go wrong on purpose: drop, duplicate, delay, reorder, fail before or after, hang."""

from stagewire.testing.faults.batches import FaultyBatchTransport, FaultyFaces, with_faults
from stagewire.testing.faults.chunks import FaultyTransport
from stagewire.testing.faults.plan import Call, Fault, FaultPlan, Gate

__all__ = [
    "Call",
    "Fault",
    "FaultPlan",
    "FaultyBatchTransport",
    "FaultyFaces",
    "FaultyTransport",
    "Gate",
    "with_faults",
]
