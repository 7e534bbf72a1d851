"""Two optional contracts: what a pipeline will send over its transport, and how a backend is tried out beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stagewire.spec.transport import ChunkLink


@dataclass(frozen=True, slots=True)
class Traffic:
    """The links and mailboxes that a pipeline uses of its transport, in all of its processes together."""

    links: Sequence[ChunkLink] = ()
    mailboxes: Sequence[str] = ()


@runtime_checkable
class HasTraffic(Protocol):
    """A `Pipeline` that says what it will send. Optional."""

    def traffic(self) -> Traffic:
        """Return its links and mailboxes. Opens nothing."""


@runtime_checkable
class Probing(Protocol):
    """A transport, KV backend or lease backend that can be tried out before it is opened. Optional."""

    async def probe(self, traffic: Traffic) -> str:
        """Connect, find what an open alone would not, and let go again; leaves nothing behind.

        Returns one line about what answered. May be called before ``open`` and beside it.

        Raises:
            StagewireError: It cannot be used: one line with the cause and the remedy, and no secret.
        """


def traffic_of(pipeline: object) -> Traffic:
    """Return what a pipeline says of its traffic; nothing where it says nothing."""
    return pipeline.traffic() if isinstance(pipeline, HasTraffic) else Traffic()
