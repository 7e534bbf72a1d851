"""Paired resources with closed ownership: bounded capacities, atomic pairing, and books that balance.

Use an `Inventory` in an asyncio program of your own, let `CspRuntime` run the three roles, or choose ``pipeline: csp``.
"""

from stagewire_csp.capacity import Capacity
from stagewire_csp.envelope import NEVER, ResourceEnvelope
from stagewire_csp.failures import FailurePolicy, RoleFailed
from stagewire_csp.findings import Finding
from stagewire_csp.gate import AdmissionGate, Valve, WaterMarks
from stagewire_csp.host import HostLimits, host_limits
from stagewire_csp.inventory import Inventory
from stagewire_csp.lease import PairLease
from stagewire_csp.metrics import register_metrics
from stagewire_csp.monitor import Monitor, MonitorReport
from stagewire_csp.pairing import NoMorePairs
from stagewire_csp.permits import Permits
from stagewire_csp.rates import Rates
from stagewire_csp.report import CspReport
from stagewire_csp.roles import Settles, Writes
from stagewire_csp.runtime import CspRuntime
from stagewire_csp.settings import RunSettings
from stagewire_csp.slots import Outcome, Slots
from stagewire_csp.snapshot import PermitState, RequestState, SideState, Snapshot
from stagewire_csp.view import LiveView, render

__all__ = [
    "NEVER",
    "AdmissionGate",
    "Capacity",
    "CspReport",
    "CspRuntime",
    "FailurePolicy",
    "Finding",
    "HostLimits",
    "Inventory",
    "LiveView",
    "Monitor",
    "MonitorReport",
    "NoMorePairs",
    "Outcome",
    "PairLease",
    "PermitState",
    "Permits",
    "Rates",
    "RequestState",
    "ResourceEnvelope",
    "RoleFailed",
    "RunSettings",
    "Settles",
    "SideState",
    "Slots",
    "Snapshot",
    "Valve",
    "WaterMarks",
    "Writes",
    "host_limits",
    "register_metrics",
    "render",
]
