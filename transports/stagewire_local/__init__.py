"""The in-process transport: both faces, bounded, with nothing to install."""

from stagewire_local.options import LocalOptions
from stagewire_local.transport import LocalTransport

__all__ = ["LocalOptions", "LocalTransport"]
