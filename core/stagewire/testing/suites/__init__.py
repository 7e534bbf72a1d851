"""One suite per contract. Subclass it as ``Test…``, override its factory, and pytest collects its tests.

The suites run their own event loops and need no pytest plugin; nothing in them assumes delivery within one process.
"""

from stagewire.testing.suites.base import Suite
from stagewire.testing.suites.batches import BatchTransportSuite
from stagewire.testing.suites.chunks import ChunkTransportSuite
from stagewire.testing.suites.kv import KVBackendSuite, StoreHarness, Stores
from stagewire.testing.suites.lease import LeaseBackendSuite
from stagewire.testing.suites.reconnect import ReconnectSuite
from stagewire.testing.suites.stage import StageSample, StageSuite
from stagewire.testing.suites.transport import Ends, TransportHarness, TransportLimits


class TransportSuite(ChunkTransportSuite, BatchTransportSuite):
    """Everything that a `stagewire.Transport` promises: override `transports`, and ``limits`` where they differ.

    One with a connection to lose subclasses `ReconnectSuite` as well (TR-7).
    """


__all__ = [
    "BatchTransportSuite",
    "ChunkTransportSuite",
    "Ends",
    "KVBackendSuite",
    "LeaseBackendSuite",
    "ReconnectSuite",
    "StageSample",
    "StageSuite",
    "StoreHarness",
    "Stores",
    "Suite",
    "TransportHarness",
    "TransportLimits",
    "TransportSuite",
]
