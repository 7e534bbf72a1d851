"""KV and leases in memory: zero copy, nothing to install."""

from stagewire_memory.kv import MemoryKV
from stagewire_memory.lease import MemoryLease
from stagewire_memory.options import MemoryKVOptions, MemoryLeaseOptions
from stagewire_memory.table import LeaseTable

__all__ = ["LeaseTable", "MemoryKV", "MemoryKVOptions", "MemoryLease", "MemoryLeaseOptions"]
