"""The hooks of a plugin: synchronous registration only. All asynchronous work happens on what the factories return."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

    from stagewire.spec.kv import KVBackend
    from stagewire.spec.lease import LeaseBackend
    from stagewire.spec.pipeline import Pipeline
    from stagewire.spec.provider import Provider
    from stagewire.spec.transport import Transport

PROJECT = "stagewire"
"""The pluggy project name and, with ``.plugins``, the entry-point group."""

ENTRY_POINT_GROUP = "stagewire.plugins"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Hooks:
    """One hook per axis. Each is optional; a plugin implements those it has something for, with ``@hookimpl``."""

    @hookspec
    def stagewire_stages(self) -> Iterable[Provider[object]]:
        """Return stage providers: `Stage`, or one of the CSP roles `Producer`, `Requester`, `Consumer`."""
        return ()

    @hookspec
    def stagewire_transports(self) -> Iterable[Provider[Transport]]:
        """Return transport providers."""
        return ()

    @hookspec
    def stagewire_kv_backends(self) -> Iterable[Provider[KVBackend]]:
        """Return KV backend providers."""
        return ()

    @hookspec
    def stagewire_lease_backends(self) -> Iterable[Provider[LeaseBackend]]:
        """Return lease backend providers."""
        return ()

    @hookspec
    def stagewire_pipelines(self) -> Iterable[Provider[Pipeline]]:
        """Return pipeline kinds; the options model is the kind's sections of the YAML file."""
        return ()

    @hookspec
    def stagewire_commands(self) -> Iterable[click.Command]:
        """Return commands for the ``stagewire`` program. Import what they need inside the command's function."""
        return ()
