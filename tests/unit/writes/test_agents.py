"""Which agent, and what happens when it stops or is lost."""

from __future__ import annotations

import asyncio
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import KVError, StillHeld
from stagewire.testing import Fault
from stagewire_writes import SessionProgress
from stagewire_writes.errors import AgentLost, NoAgent, SessionEnded, SessionUnknown, WriteError
from stagewire_writes.presence import Node
from stagewire_writes.routing import Routes

if TYPE_CHECKING:
    from tests.unit.writes.conftest import Play, World

DATA = os.urandom(1_000)


class Registry:
    """Answers who serves, and counts how often it was asked."""

    def __init__(self, *names: str) -> None:
        self.nodes = [Node("data", name, "1") for name in names]
        self.asked = 0
        self.now = 0.0
        self.broken = False

    async def ask(self, _export: str) -> list[Node]:
        self.asked += 1
        if self.broken:
            raise KVError("out of reach")
        return self.nodes

    def routes(self) -> Routes:
        return Routes(["data"], self.ask, lambda: self.now, 30.0)


def test_ws14_round_robin_from_a_snapshot_that_is_asked_for_once() -> None:
    async def main() -> None:
        registry = Registry("a", "b", "c")
        routes = registry.routes()
        chosen = [(await routes.choose("data")).name for _ in range(9)]
        assert sorted(chosen[:3]) == ["a", "b", "c"]
        assert chosen[:3] == chosen[3:6] == chosen[6:]
        assert registry.asked == 1
        registry.now = 31
        await asyncio.gather(*(routes.choose("data") for _ in range(10)))
        assert registry.asked == 2

    asyncio.run(main())


def test_ws14_a_node_that_is_gone_is_asked_about_and_not_chosen() -> None:
    async def main() -> None:
        registry = Registry("a", "b")
        routes = registry.routes()
        gone = await routes.choose("data")
        registry.nodes = [node for node in registry.nodes if node != gone]
        routes.gone(gone)
        assert {(await routes.choose("data")).name for _ in range(4)} == {registry.nodes[0].name}
        assert registry.asked == 2

    asyncio.run(main())


def test_ws14_an_old_snapshot_serves_while_the_registry_does_not() -> None:
    async def main() -> None:
        registry = Registry("a")
        routes = registry.routes()
        await routes.choose("data")
        registry.broken, registry.now = True, 1_000
        assert (await routes.choose("data")).name == "a"
        other = Registry()
        other.broken = True
        with pytest.raises(NoAgent, match="out of reach"):
            await other.routes().choose("data")

    asyncio.run(main())


def test_ws14_only_agents_of_that_export_are_asked(play: Play) -> None:
    async def story(world: World) -> None:
        assert (await world.controller.nodes.choose("data")).name == "a"
        with pytest.raises(NoAgent, match="there is no export 'other': the configuration has data"):
            await world.controller.put_small("other", "x", b"x")
        await world.agent.close()
        with pytest.raises(NoAgent, match="start one with"):
            await world.new_controller().put_small("data", "x", b"x")

    play(story)


def test_ws14_a_restarted_agent_is_found_without_the_caller_noticing(play: Play) -> None:
    async def story(world: World) -> None:
        await world.controller.put_small("data", "x", b"one")
        await world.agent.close()
        world.agent = world.new_agent()
        await world.agent.start()
        await world.controller.put_small("data", "x", b"two")
        assert world.read("x") == b"two"

    play(story)


def test_ws14_configured_nodes_need_no_registry(play: Play) -> None:
    async def story(world: World) -> None:
        await world.kv.inner.close()
        await world.controller.put_small("data", "x", b"small")
        await world.put("y", DATA)
        assert (world.read("x"), world.read("y")) == (b"small", DATA)
        world.kv.inner._closed = False

    play(story, export={"nodes": ["a"]})


def test_ws15_an_agent_that_stops_admits_nothing_and_ends_with_an_empty_map(play: Play) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:64])
        await session.wait()
        await world.agent.close()
        assert len(world.agent.sessions) == 0
        assert (world.read("x"), world.files()) == (b"old", ["x"])
        with pytest.raises(WriteError):
            await session.finalize()

    play(story)


def test_ws15_an_open_that_is_under_way_at_the_stop_is_swept_too(play: Play) -> None:
    async def story(world: World) -> None:
        gate = asyncio.Event()

        async def slow(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if function.__name__ == "open_session":
                await gate.wait()
            return function(*args, **kwargs)

        handlers = world.agent._handlers
        assert handlers is not None
        handlers._offload = slow
        opening = asyncio.create_task(world.controller.open_session("data", "x"))
        await asyncio.sleep(1)
        closing = asyncio.create_task(world.agent.close())
        await asyncio.sleep(1)
        assert not closing.done()
        gate.set()
        await closing
        assert len(world.agent.sessions) == 0
        await opening

    play(story)


def test_ws15_sd7_what_is_not_released_by_the_deadline_stays_owned_and_is_tried_again(play: Play) -> None:
    async def story(world: World) -> None:
        gate = asyncio.Event()

        async def stuck(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if function.__name__ == "write":
                await gate.wait()
            return function(*args, **kwargs)

        world.agent.sessions._offload = stuck
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:64])
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        with pytest.raises(StillHeld, match=r"session .* on 'x'"):
            await world.agent.close()
        assert asyncio.get_running_loop().time() - began == pytest.approx(30, abs=0.1)
        assert len(world.agent.sessions) == 1
        gate.set()
        await world.agent.close()
        assert world.files() == []

    play(story)


def test_ws19_a_lost_agent_is_reported_within_the_timeout_of_the_request(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        world.plan.add(Fault.HANG, on="request", times=None)
        for server in world.agent._servers:
            await server.stop()
        world.plan.clear()
        await session.submit(0, DATA[:32])
        began = asyncio.get_running_loop().time()
        with pytest.raises(AgentLost, match="agent 'a' of export 'data' is lost"):
            await session.finalize()
        assert asyncio.get_running_loop().time() - began <= 42

    play(story)


def test_ws19_a_restarted_agent_is_noticed_by_the_next_heartbeat(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await world.agent.close()
        world.agent = world.new_agent()
        await world.agent.start()
        await asyncio.sleep(world.options.session.heartbeat + 1)
        with pytest.raises((SessionUnknown, AgentLost)):
            await session.submit(0, DATA[:32])
        await world.put("x", DATA)
        assert world.read("x") == DATA

    play(story)


def test_ws11_the_first_error_is_raised_whatever_the_abort_says(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA)
        session._session.fail(WriteError("the first"))
        world.plan.add(Fault.FAIL, on="request", times=None)
        with pytest.raises(WriteError, match="the first"):
            await session.finalize()
        world.plan.clear()
        session._target.sessions.clear()
        await asyncio.sleep(world.options.session.idle * 2)

    play(story)


def test_ws11_a_session_whose_opener_was_cancelled_is_aborted(play: Play) -> None:
    async def story(world: World) -> None:
        await world.controller.nodes.choose("data")
        world.plan.add(Fault.DELAY, on="request", seconds=5)
        opening = asyncio.create_task(world.controller.open_session("data", "x"))
        await asyncio.sleep(1)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await asyncio.sleep(10)
        assert len(world.agent.sessions) == 0
        await world.put("x", DATA)

    play(story)


def test_ws11_leaving_the_block_by_an_error_aborts(play: Play) -> None:
    async def story(world: World) -> None:
        (world.root / "x").write_bytes(b"old")

        async def fail() -> None:
            async with await world.controller.open_session("data", "x") as session:
                await session.submit(0, DATA)
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            await fail()
        assert world.read("x") == b"old"
        assert len(world.agent.sessions) == 0

    play(story)


def test_ws20_progress_says_what_is_accepted_acknowledged_and_written(play: Play) -> None:
    async def story(world: World) -> None:
        seen: list[SessionProgress] = []
        session = await world.controller.open_session("data", "x", observe=seen.append)
        await session.submit(0, DATA)
        await session.finalize()
        assert seen[0] == SessionProgress(1_000, 0, 0, "KV-ref")
        assert seen[-1] == SessionProgress(1_000, 1_000, 1_000, "KV-ref")
        for before, after in pairwise(seen):
            assert before.acknowledged <= after.acknowledged
            assert before.written <= after.written <= after.acknowledged <= after.accepted
        assert [each["path"] for each in world.events("session.finalized")] == ["x"]

    play(story)


def test_a_closed_controller_admits_nothing_and_its_sessions_are_aborted(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA)
        await world.controller.close()
        with pytest.raises(SessionEnded):
            await session.submit(1_000, b"x")
        assert len(world.agent.sessions) == 0
        with pytest.raises(Exception, match="closed"):
            await world.controller.put_small("data", "y", b"x")

    play(story)
