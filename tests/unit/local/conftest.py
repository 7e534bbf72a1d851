from __future__ import annotations

import pytest

from stagewire import ChunkLink
from stagewire.testing import ManualClock
from stagewire_local import LocalOptions, LocalTransport


class Bench:
    """A local transport with a clock of its own, and one edge of it."""

    def __init__(self, **options: object) -> None:
        self.clock = ManualClock()
        self.transport = LocalTransport(LocalOptions.model_validate(options), clock=self.clock)
        self.chunks = self.transport.chunks(ChunkLink("edge", 0, 1))

    @property
    def stats(self) -> dict[str, float]:
        return dict(self.transport.stats()["edge"])


@pytest.fixture
def make_bench() -> type[Bench]:
    return Bench
