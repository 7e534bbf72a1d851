"""Tries the backends of a configuration out, one after the other, without running anything."""

from __future__ import annotations

from collections.abc import Mapping

from stagewire.assembly import Assembly, Backend
from stagewire.errors import StagewireError, describe
from stagewire.spec.probe import Probing, Traffic, traffic_of


async def probe_all(assembly: Assembly) -> Mapping[str, str | StagewireError]:
    """Return, for each backend by what a person calls it, what answered or why it cannot be used."""
    for ask in (assembly.kv, assembly.lease, assembly.transport):
        ask()
    traffic = traffic_of(assembly.product)
    return {name: await _outcome(name, backend, traffic) for name, backend in assembly.backends.items()}


async def probe(name: str, backend: Backend, traffic: Traffic) -> str | None:
    """Try one backend out; ``None`` when it has no way to. Raises `StagewireError`."""
    if not isinstance(backend, Probing):
        return None
    try:
        return await backend.probe(traffic)
    except StagewireError:
        raise
    except Exception as error:
        raise StagewireError(f"{name} could not be tried out: {describe(error)}") from error


async def _outcome(name: str, backend: Backend, traffic: Traffic) -> str | StagewireError:
    try:
        return await probe(name, backend, traffic) or "nothing to connect to"
    except StagewireError as error:
        return error
