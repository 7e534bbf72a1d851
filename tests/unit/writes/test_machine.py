"""A session against a file in memory: submits, lost acknowledgements, failing stores, degradation, finalize, abort,
restarts and kills of the agent, in any order. At every moment the file is the old one or the new one, whole."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.unit.writes.conftest import World

from stagewire import LeaseLost
from stagewire.testing import Fault, VirtualLoop
from stagewire_writes import WriteError, WriteSession

T = TypeVar("T")

FAULTS = (Fault.FAIL, Fault.FAIL_AFTER, Fault.DROP, Fault.DELAY)


class Sessions(RuleBasedStateMachine):
    """One path, one session at a time, beside small puts."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.world: World = self.run(self.begin())
        self.file: bytes | None = None
        self.draft = bytearray()
        self.session: WriteSession | None = None
        self.orphaned = False  # the agent that the session was opened at is gone, and its hold of the path with it
        self.numbers = 0

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(main)

    async def begin(self) -> World:
        world = World(Path(self.folder.name) / "export")
        await world.start()
        return world

    def content(self) -> bytes | None:
        path = self.world.root / "x"
        return path.read_bytes() if path.exists() else None

    def bytes(self, size: int) -> bytes:
        self.numbers += 1
        return bytes((self.numbers * 7 + index) % 256 for index in range(size))

    @precondition(lambda self: self.session is None)
    @rule()
    def open(self) -> None:
        with suppress(WriteError):  # a killed agent may still hold the path, or be unknown
            self.session = self.run(self.world.controller.open_session("data", "x"))
            self.draft = bytearray()
            self.orphaned = False

    @precondition(lambda self: self.session is not None)
    @rule(size=st.integers(0, 150))
    def submit(self, size: int) -> None:
        assert self.session is not None
        data = self.bytes(size)
        try:
            self.run(self.session.submit(len(self.draft), data))
            self.draft += data
        except WriteError:
            self.give_up()

    @precondition(lambda self: self.session is not None)
    @rule()
    def barrier(self) -> None:
        assert self.session is not None
        try:
            self.run(self.session.wait())
            assert self.session.progress.acknowledged == len(self.draft)
        except WriteError:
            self.give_up()

    @precondition(lambda self: self.session is not None)
    @rule()
    def finalize(self) -> None:
        assert self.session is not None
        session, self.session = self.session, None
        try:
            written = self.run(session.finalize())
        except WriteError:
            assert self.content() in (self.file, bytes(self.draft))
            self.file = self.content()
        else:
            assert written.size == len(self.draft)
            self.file = bytes(self.draft)

    @precondition(lambda self: self.session is not None)
    @rule()
    def abort(self) -> None:
        self.give_up()

    def give_up(self) -> None:
        assert self.session is not None
        session, self.session = self.session, None
        self.run(session.abort())

    @rule(size=st.integers(0, 15))
    def small_put(self, size: int) -> None:
        data = self.bytes(size)
        try:
            self.run(self.world.controller.put_small("data", "x", data))
            assert self.session is None or self.orphaned
            self.file = data
        except WriteError:
            assert self.content() in (self.file, data)
            self.file = self.content()

    @rule(fault=st.sampled_from(FAULTS), on=st.sampled_from(["data", "control"]), times=st.integers(1, 3))
    def trouble_messages(self, fault: Fault, on: str, times: int) -> None:
        if fault is Fault.DROP:
            fault = Fault.FAIL
        self.world.plan.add(fault, on="request", when=lambda name: str(name).endswith(on), times=times, seconds=3)

    @rule(what=st.sampled_from(["fail_puts", "fail_gets", "lose_gets", "flip_gets"]), times=st.integers(1, 2))
    def trouble_store(self, what: str, times: int) -> None:
        setattr(self.world.kv, what, times)

    @rule()
    def lose_lease(self) -> None:
        registration = self.world.controller.lease._registration
        if registration is not None:
            registration.lose(LeaseLost("it ended"))

    @rule(seconds=st.sampled_from([0.01, 1, 30]))
    def let_time_pass(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def restart_agent(self) -> None:
        async def restart() -> None:
            await self.world.agent.close()
            self.world.agent = self.world.new_agent()
            await self.world.agent.start()

        self.orphaned = True
        self.run(restart())

    @rule()
    def kill_agent(self) -> None:
        """What SIGKILL does: nothing is said, the kernel lets go of the locks, files stay where they are."""

        async def kill() -> None:
            agent = self.world.agent
            for server in agent._servers:
                await server.stop()
                server._tasks.cancel_all()
                await server._tasks.join()
            agent._tasks.cancel_all()
            for name, session in agent.sessions._sessions.items():
                for task in (agent.sessions._endings[name], session._writer):
                    task.cancel()
                    await asyncio.wait([task])
                if session._file._hold.fd >= 0:
                    session._file._hold._let_go()
            await agent._tasks.join()
            if agent._presence._registration is not None:
                agent._presence._registration.unregister()
            self.world.agent = self.world.new_agent()
            await self.world.agent.start()

        self.orphaned = True
        self.run(kill())

    @invariant()
    def the_file_is_whole(self) -> None:
        assert self.content() == self.file

    def teardown(self) -> None:
        try:
            self.run(self.end())
        finally:
            self.runner.close()
            self.folder.cleanup()

    async def end(self) -> None:
        world = self.world
        world.plan.clear()
        for name in ("fail_puts", "fail_gets", "lose_gets", "flip_gets"):
            setattr(world.kv, name, 0)
        await asyncio.sleep(world.options.session.idle * 3)
        await world.put("y", b"the next attempt succeeds" * 10)
        await world.controller.close()
        await world.agent._offload(world.agent._export.reap, -1)  # type: ignore[union-attr]
        await world.agent.close()
        await world.transport.close()
        assert [name for name in world.files() if name.startswith(".stagewire")] == []
        assert await world.temporary_keys() == []
        await asyncio.sleep(1)
        left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, left


Sessions.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
test_ws9_ws10_ws17_ws19_a_session_against_a_model_file = Sessions.TestCase
