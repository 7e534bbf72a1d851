"""Registers ``redis`` as a KV and as a lease backend."""

from __future__ import annotations

from stagewire import BuildContext, Extra, KVBackend, LeaseBackend, Provider, hookimpl
from stagewire_redis.options import RedisKVOptions, RedisLeaseOptions

EXTRA = Extra("redis", ("redis", "hiredis"))


def make_kv(options: RedisKVOptions, _context: BuildContext) -> KVBackend:
    """Build the KV backend; connects when it is opened."""
    from stagewire_redis.kv import RedisKV  # noqa: PLC0415 — redis is only loaded when it is used

    return RedisKV(options)


def make_lease(options: RedisLeaseOptions, context: BuildContext) -> LeaseBackend:
    """Build the lease backend; connects when it is opened."""
    from stagewire_redis.lease import RedisLease  # noqa: PLC0415 — see make_kv

    return RedisLease(options, context.clock)


@hookimpl
def stagewire_kv_backends() -> list[Provider[KVBackend]]:
    """Offer ``kv: {use: redis}``."""
    summary = "Values in Redis or Valkey, for stages on many machines."
    return [Provider(name="redis", summary=summary, options=RedisKVOptions, factory=make_kv, extra=EXTRA)]


@hookimpl
def stagewire_lease_backends() -> list[Provider[LeaseBackend]]:
    """Offer ``lease: {use: redis}``."""
    summary = "Leases in Redis or Valkey, beside the values that they hold."
    return [Provider(name="redis", summary=summary, options=RedisLeaseOptions, factory=make_lease, extra=EXTRA)]
