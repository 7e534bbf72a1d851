"""One cancel at every tick of a write: whatever is cut, the file is the old one or the new one, and nothing is left."""

from __future__ import annotations

import asyncio
import tempfile
from functools import partial
from pathlib import Path

import pytest
from tests.unit.writes.conftest import World

from stagewire.testing import SweepRun, sweep_cancels
from stagewire_writes import HybridWriter

OLD, NEW = b"the old content", bytes(range(200))


class Swept:
    """A world in a directory of its own."""

    def __init__(self, size: int, troubled: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.size = size
        self.world = World(Path(self.folder.name) / "export")
        if troubled:
            self.world.kv.fail_puts = 1

    async def write(self) -> None:
        await self.world.start()
        (self.world.root / "x").write_bytes(OLD)
        writer = HybridWriter(self.world.controller, "data", "x")
        for at in range(0, self.size, 50):
            await writer.write(NEW[at : min(self.size, at + 50)])
        await writer.finish()


async def check(swept: Swept, run: SweepRun) -> None:
    world = swept.world
    await asyncio.sleep(0.5)
    cut = isinstance(run.outcome, asyncio.CancelledError)
    assert cut or run.outcome is None, run.outcome
    await asyncio.sleep(world.options.session.idle * 2)
    assert len(world.agent.sessions) == 0
    if (world.root / "x").exists():
        assert world.read("x") in ((OLD, NEW[: swept.size]) if cut else (NEW[: swept.size],))
        if world.agent._handlers is not None:  # it had started
            await world.controller.put_small("data", "y", b"free")
    await world.controller.close()
    await world.agent.close()
    await world.transport.close()
    assert [name for name in world.files() if name.startswith(".stagewire")] == []
    assert await world.temporary_keys() == []
    swept.folder.cleanup()
    await asyncio.sleep(1)


@pytest.mark.parametrize(("size", "troubled"), [(12, False), (200, False), (200, True)])
def test_ws11_a_cancel_at_every_tick_leaves_one_whole_file_and_nothing_else(size: int, troubled: bool) -> None:
    result = sweep_cancels(partial(Swept, size, troubled), Swept.write, check)

    assert result.ticks > 10
    assert result.hits > 5


def test_ws11_cleanup_stands_a_second_cancel() -> None:
    sweep_cancels(partial(Swept, 100, False), Swept.write, check, cancels=2)
