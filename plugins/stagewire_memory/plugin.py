"""Registers ``memory`` as a KV and as a lease backend. One App's two share their leases."""

from __future__ import annotations

from stagewire import BuildContext, KVBackend, LeaseBackend, Provider, hookimpl
from stagewire_memory.kv import MemoryKV
from stagewire_memory.lease import MemoryLease
from stagewire_memory.options import MemoryKVOptions, MemoryLeaseOptions
from stagewire_memory.table import LeaseTable


def _table(context: BuildContext) -> LeaseTable:
    return context.shared(("stagewire_memory", "leases"), lambda: LeaseTable(context.clock))


def make_kv(options: MemoryKVOptions, context: BuildContext) -> MemoryKV:
    """Build the KV backend; opens nothing."""
    return MemoryKV(options, _table(context))


def make_lease(_options: MemoryLeaseOptions, context: BuildContext) -> MemoryLease:
    """Build the lease backend; opens nothing."""
    return MemoryLease(_table(context))


@hookimpl
def stagewire_kv_backends() -> list[Provider[KVBackend]]:
    """Offer ``kv: {use: memory}``."""
    return [
        Provider(
            name="memory",
            summary="Values in this process; a get copies nothing.",
            options=MemoryKVOptions,
            factory=make_kv,
            capabilities=frozenset({"in-process"}),
        )
    ]


@hookimpl
def stagewire_lease_backends() -> list[Provider[LeaseBackend]]:
    """Offer ``lease: {use: memory}``."""
    return [
        Provider(
            name="memory",
            summary="Leases in this process, for the memory KV backend.",
            options=MemoryLeaseOptions,
            factory=make_lease,
            capabilities=frozenset({"in-process"}),
        )
    ]
