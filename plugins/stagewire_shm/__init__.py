"""KV and lease backends in shared memory, for many processes on one host: a reader maps what the writer wrote."""

from stagewire_shm.options import ShmKVOptions, ShmLeaseOptions
from stagewire_shm.plugin import make_kv, make_lease

__all__ = ["ShmKVOptions", "ShmLeaseOptions", "make_kv", "make_lease"]
