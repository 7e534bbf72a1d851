"""How things stop: signal, gate, task registry, dependents, phases, one closer, SIGTERM and Ctrl-C (SD-1 … SD-8)."""

from stagewire.lifecycle.attempts import AttemptFailed, Attempts, Finished, Pending
from stagewire.lifecycle.closer import CloseFailed, CloseOutcome, Closer
from stagewire.lifecycle.dependents import Dependent, Dependents, DependentsFailed, Participant
from stagewire.lifecycle.gate import Admission, ShutdownGate
from stagewire.lifecycle.order import Module, shutdown_phases
from stagewire.lifecycle.phases import PhaseFailed, Phases, Step
from stagewire.lifecycle.signal import StopSignal
from stagewire.lifecycle.signals import ForcedStop, stop_on_signals
from stagewire.lifecycle.tasks import OnFailure, TaskRegistry

__all__ = [
    "Admission",
    "AttemptFailed",
    "Attempts",
    "CloseFailed",
    "CloseOutcome",
    "Closer",
    "Dependent",
    "Dependents",
    "DependentsFailed",
    "Finished",
    "ForcedStop",
    "Module",
    "OnFailure",
    "Participant",
    "Pending",
    "PhaseFailed",
    "Phases",
    "ShutdownGate",
    "Step",
    "StopSignal",
    "TaskRegistry",
    "shutdown_phases",
    "stop_on_signals",
]
