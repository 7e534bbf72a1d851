"""Registers ``shm`` as a KV and as a lease backend."""

from __future__ import annotations

from stagewire import BuildContext, KVBackend, LeaseBackend, Provider, hookimpl
from stagewire_shm.options import ShmKVOptions, ShmLeaseOptions


def make_kv(options: ShmKVOptions, context: BuildContext) -> KVBackend:
    """Build the KV backend; makes and maps nothing before it is opened."""
    from stagewire_shm.kv import ShmKV  # noqa: PLC0415 — sqlite3 is only loaded when it is used

    return ShmKV(options, context.clock)


def make_lease(options: ShmLeaseOptions, context: BuildContext) -> LeaseBackend:
    """Build the lease backend; makes nothing before it is opened."""
    from stagewire_shm.lease import ShmLease  # noqa: PLC0415 — see make_kv

    return ShmLease(options, context.clock)


@hookimpl
def stagewire_kv_backends() -> list[Provider[KVBackend]]:
    """Offer ``kv: {use: shm}``."""
    summary = "Values in shared memory, for processes on one host; a get copies nothing."
    return [Provider(name="shm", summary=summary, options=ShmKVOptions, factory=make_kv)]


@hookimpl
def stagewire_lease_backends() -> list[Provider[LeaseBackend]]:
    """Offer ``lease: {use: shm}``."""
    summary = "Leases in shared memory, beside the values that they hold."
    return [Provider(name="shm", summary=summary, options=ShmLeaseOptions, factory=make_lease)]
