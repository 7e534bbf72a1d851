"""The kit for testing stages, transports, backends and pipelines. Public: plugin authors use it too."""

from stagewire.testing.clock import Stuck, VirtualLoop, run_virtual

__all__ = ["Stuck", "VirtualLoop", "run_virtual"]
