"""The kit for testing stages, transports, backends and pipelines. Public: plugin authors use it too."""

from stagewire.testing.clock import Stuck, VirtualLoop, run_virtual
from stagewire.testing.sweep import SweepResult, SweepRun, sweep_cancels

__all__ = ["Stuck", "SweepResult", "SweepRun", "VirtualLoop", "run_virtual", "sweep_cancels"]
