"""Submit, acknowledge, barrier: what each of them means."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stagewire.testing import Fault
from stagewire_writes.errors import (
    AgentLost,
    FrameRefused,
    Incomplete,
    OffsetRefused,
    PathHeld,
    SessionEnded,
    SessionUnknown,
)
from stagewire_writes.protocol import Ack, Finalize, Frames, Written

if TYPE_CHECKING:
    from tests.unit.writes.conftest import Play, World

DATA = os.urandom(1_000)


def test_ws3_a_file_arrives_whole(play: Play) -> None:
    async def story(world: World) -> None:
        written = await world.put("a/b.bin", DATA)

        assert world.read("a/b.bin") == DATA
        status = (world.root / "a/b.bin").stat()
        assert (written.size, written.mtime) == (1_000, status.st_mtime)

    play(story)


def test_ws3_submit_means_queued_here_and_ack_means_queued_there(play: Play) -> None:
    """With a disk that never ends a write, submit returns and the frames are acknowledged; finalize waits."""

    async def story(world: World) -> None:
        stuck = asyncio.Event()

        async def slow(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if function.__name__ == "write":
                await stuck.wait()
            return function(*args, **kwargs)

        world.agent.sessions._offload = slow
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:32])
        assert session.progress.accepted == 32
        await asyncio.sleep(1)
        assert (session.progress.acknowledged, session.progress.written) == (32, 0)
        finalize = asyncio.create_task(session.finalize())
        await asyncio.sleep(100)
        assert not finalize.done()
        stuck.set()
        assert (await finalize).size == 32

    play(story)


def test_ws3_finalize_sets_the_exact_length_over_a_longer_file(play: Play) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"o" * 5_000)
        await world.put("x", DATA)
        assert world.read("x") == DATA

    for mode in ("atomic", "in_place"):
        play(story, export={"mode": mode})


def test_ws3_wait_is_a_barrier_without_the_end(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:40])
        await session.wait()
        assert session.progress.written == 40
        await session.submit(40, DATA[40:80])
        await session.finalize()
        assert world.read("x") == DATA[:80]

    play(story)


@pytest.mark.parametrize(("offset", "what"), [(40, "gap"), (24, "overlap"), (0, "repeat"), (-1, "negative")])
def test_ws4_what_does_not_follow_is_refused_with_both_offsets(play: Play, offset: int, what: str) -> None:
    del what

    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:32])
        with pytest.raises(OffsetRefused, match=rf"offset {offset} .* 32 is expected"):
            await session.submit(offset, DATA[:8])
        await session.submit(32, DATA[32:40])
        await session.finalize()
        assert world.read("x") == DATA[:40]

    play(story)


def test_ws4_after_a_barrier_a_payload_may_begin_anywhere(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, b"a" * 40)
        await session.wait()
        await session.submit(4, b"b" * 4)
        await session.wait()
        await session.submit(40, b"c" * 8)
        await session.finalize()
        assert world.read("x") == b"a" * 4 + b"b" * 4 + b"a" * 32 + b"c" * 8

    play(story)


class Agent:
    """Talks to the agent without a controller, so that it may say anything."""

    def __init__(self, world: World, session: Any) -> None:
        self.world = world
        self.id = session.id
        self.node = session._session.node

    async def frames(self, sequence: int, offset: int, *frames: bytes) -> Ack:
        import zlib  # noqa: PLC0415

        head = Frames(
            self.id,
            self.world.controller.source,
            sequence,
            offset,
            [len(each) for each in frames],
            [zlib.crc32(each) for each in frames],
        )
        views = [memoryview(each) for each in frames]
        return await self.world.remote.call_data(self.node, "raw", head, Ack, timeout=300, data=views)

    async def finalize(self, frames: int, size: int) -> Written:
        head = Finalize(self.id, self.world.controller.source, frames, size)
        return await self.world.remote.call_data(self.node, "finalize", head, Written, timeout=300)


async def opened(world: World) -> Agent:
    return Agent(world, await world.controller.open_session("data", "x"))


def test_ws5_the_greatest_sequence_proves_nothing(play: Play) -> None:
    """Frame 1 without frame 0: neither is it written, nor does finalize succeed."""

    async def story(world: World) -> None:
        agent = await opened(world)
        early = asyncio.create_task(agent.frames(1, 8, b"b" * 8))
        with pytest.raises(Incomplete, match="0 of 2 frames are written and 0 were received after 240 s"):
            await agent.finalize(2, 16)
        assert not early.done()
        await agent.frames(0, 0, b"a" * 8)
        await early
        await agent.finalize(2, 16)
        assert world.read("x") == b"a" * 8 + b"b" * 8

    play(story)


def test_ws3_all_who_ask_to_finalize_meanwhile_are_told_the_same(play: Play) -> None:
    """Who got no answer in time asks again, while the first request still waits for the frames."""

    async def story(world: World) -> None:
        agent = await opened(world)
        asking = [asyncio.create_task(agent.finalize(1, 8)) for _ in range(3)]
        await asyncio.sleep(1)
        await agent.frames(0, 0, b"a" * 8)
        assert [(await each).size for each in asking] == [8, 8, 8]
        assert world.read("x") == b"a" * 8

    play(story)


def test_ws5_a_wrong_number_of_frames_is_named(play: Play) -> None:
    async def story(world: World) -> None:
        agent = await opened(world)
        await agent.frames(0, 0, b"a" * 8, b"b" * 8)
        with pytest.raises(FrameRefused, match="2 frames were received, 1 announced"):
            await agent.finalize(1, 8)

    play(story)


def test_ws6_of_a_batch_that_is_partly_in_only_the_rest_is_queued(play: Play) -> None:
    async def story(world: World) -> None:
        agent = await opened(world)
        await agent.frames(0, 0, b"a" * 8, b"b" * 8)
        ack = await agent.frames(0, 0, b"a" * 8, b"b" * 8, b"c" * 8, b"d" * 8)
        assert ack.received == 4
        assert (await agent.frames(1, 8, b"b" * 8)).received == 4
        await agent.finalize(4, 32)
        assert world.read("x") == b"a" * 8 + b"b" * 8 + b"c" * 8 + b"d" * 8

    play(story)


@pytest.mark.parametrize("offset", [0, 7, 9, 100])
def test_ws4_the_agent_refuses_gaps_and_overlaps_too(play: Play, offset: int) -> None:
    async def story(world: World) -> None:
        agent = await opened(world)
        await agent.frames(0, 0, b"a" * 8)
        with pytest.raises(OffsetRefused, match=f"offset {offset} .*8 is expected"):
            await agent.frames(1, offset, b"b" * 8)

    play(story)


def test_ws3_an_answer_of_finalize_that_was_lost_is_asked_for_again(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:64])
        await session.wait()
        world.plan.add(Fault.FAIL_AFTER, on="request", when=lambda name: str(name).endswith("data"), times=2)
        assert (await session.finalize()).size == 64
        assert world.read("x") == DATA[:64]

    play(story)


def test_ws3_after_finalize_the_session_takes_nothing(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:8])
        await session.finalize()
        with pytest.raises(SessionEnded):
            await session.submit(8, b"x")
        agent = Agent(world, session)
        with pytest.raises(SessionEnded):
            await agent.frames(1, 8, b"x")

    play(story)


def test_ws7_back_pressure_runs_the_whole_way(play: Play) -> None:
    """A stuck disk holds 32 bytes at the agent; with 128 in flight, submit waits; a write lets it go on."""

    async def story(world: World) -> None:
        gate = asyncio.Event()

        async def slow(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if function.__name__ == "write":
                await gate.wait()
            return function(*args, **kwargs)

        world.agent.sessions._offload = slow
        session = await world.controller.open_session("data", "x")
        submitted = 0

        async def producer() -> None:
            nonlocal submitted
            for at in range(0, 640, 32):
                await session.submit(at, DATA[at : at + 32])
                submitted += 32

        task = asyncio.create_task(producer())
        await asyncio.sleep(5)
        (held,) = world.agent.sessions._sessions.values()
        assert held.queued <= 32
        assert submitted - session.progress.acknowledged == 128
        assert submitted <= 32 + 128
        gate.set()
        await task
        await session.finalize()
        assert world.read("x") == DATA[:640]

    play(story)


def test_ws7_a_submit_larger_than_the_window_is_let_in_alone(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA)
        await session.finalize()
        assert world.read("x") == DATA

    play(story)


@pytest.mark.parametrize("end", ["abort", "failure", "shutdown"])
def test_ws7_whoever_waits_for_room_is_woken(play: Play, end: str) -> None:
    async def story(world: World) -> None:
        world.plan.add(Fault.HANG, on="request", when=lambda name: str(name).endswith("data"), times=None)
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:128])
        waiting = asyncio.create_task(session.submit(128, DATA[128:256]))
        barrier = asyncio.create_task(session.wait())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        if end == "abort":
            await session.abort()
        elif end == "failure":
            session._session.fail(AgentLost("gone"))
        else:
            await world.controller.close()
        for task in (waiting, barrier):
            with pytest.raises((SessionEnded, AgentLost)):
                await task

    play(story)


def test_ws10_a_restarted_agent_takes_no_frame_of_its_predecessor(play: Play) -> None:
    async def story(world: World) -> None:
        agent = await opened(world)
        assert agent.id.startswith(world.agent.instance)
        await world.agent.close()
        successor = world.new_agent()
        await successor.start()
        try:
            with pytest.raises(Exception, match="another process"):
                await agent.frames(0, 0, b"late")
            delayed = type(agent.node)("data", "a", successor.instance)
            agent.node = delayed
            with pytest.raises(SessionUnknown):
                await agent.frames(0, 0, b"late")
        finally:
            await successor.close()

    play(story)


def test_ws12_a_path_is_held_by_one_session(play: Play) -> None:
    async def story(world: World) -> None:
        first = await world.controller.open_session("data", "x")
        with pytest.raises(PathHeld):
            await world.controller.open_session("data", "x")
        with pytest.raises(PathHeld):
            await world.controller.put_small("data", "x", b"small")
        async with await world.controller.open_session("data", "y"):
            pass
        await first.abort()
        await world.put("x", DATA)

    play(story)


def test_ws12_a_path_is_held_against_another_agent_of_the_same_tree(play: Play, tmp_path: Path) -> None:
    async def story(world: World) -> None:
        other = world.new_agent(node="b")
        await other.start()
        world.controller.nodes._snapshots["data"].nodes = []
        try:
            first = await world.controller.open_session("data", "x")
            with pytest.raises(PathHeld):
                await world.controller.open_session("data", "x")
            await first.finalize()
        finally:
            await other.close()

    play(story)


def test_ws12_an_idle_session_is_reaped_and_its_path_free(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        session._target.sessions.clear()  # its controller falls silent
        await asyncio.sleep(world.options.session.idle * 2)
        assert len(world.agent.sessions) == 0
        assert world.events("session.reaped")[0]["path"] == "x"
        await world.put("x", DATA)

    play(story)


def test_ws12_a_quiet_session_of_a_live_controller_is_kept(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await asyncio.sleep(world.options.session.idle * 20)
        await session.submit(0, DATA[:8])
        await session.finalize()
        assert world.read("x") == DATA[:8]

    play(story)
