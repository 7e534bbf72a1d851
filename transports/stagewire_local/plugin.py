"""Registers the transport ``local``."""

from __future__ import annotations

from stagewire import BuildContext, Provider, Transport, hookimpl
from stagewire_local.options import LocalOptions
from stagewire_local.transport import LocalTransport


def make_transport(options: LocalOptions, context: BuildContext) -> LocalTransport:
    """Build the transport; opens nothing."""
    return LocalTransport(options, clock=context.clock, log=context.log)


@hookimpl
def stagewire_transports() -> list[Provider[Transport]]:
    """Offer ``transport: {use: local}``."""
    return [
        Provider(
            name="local",
            summary="Chunks and mailboxes inside this process; values travel by reference.",
            options=LocalOptions,
            factory=make_transport,
            capabilities=frozenset({"in-process"}),
        )
    ]
