"""Payload by reference, and what happens when that fails."""

from __future__ import annotations

import asyncio
import os
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import LeaseLost, Retryable
from stagewire.testing import Fault
from stagewire_writes import WriteSession
from stagewire_writes.errors import FrameRefused, PayloadMissing, ReferenceRefused
from stagewire_writes.protocol import MAX_OFFSET, Ack, Reference, key_of

if TYPE_CHECKING:
    from tests.unit.writes.conftest import Play, World

DATA = os.urandom(1_000)


def on_data(name: Any) -> bool:
    return str(name).endswith("data")


def test_ws8_payload_goes_by_reference_and_no_key_is_left(play: Play) -> None:
    async def story(world: World) -> None:
        await world.put("x", DATA)
        keys = [key for key in world.kv.puts if key.startswith("write-")]
        assert len(keys) == len(set(keys)) == 32
        await asyncio.sleep(1)
        assert await world.temporary_keys() == []
        assert len(world.controller.keys) == 0

    play(story)


def test_ws8_tk1_the_key_is_recorded_before_it_is_put(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        world.kv.hang_puts = True
        await session.submit(0, DATA[:32])
        await asyncio.sleep(1)
        assert list(world.controller.keys.states()) == [key for key in world.kv.puts if key.startswith("write-")]
        world.kv.hang_puts = False
        await session.finalize()

    play(story, leftovers=True)


class Forger:
    """Makes references that are right but for what a test changes."""

    def __init__(self, world: World, session: Any) -> None:
        self.world = world
        self.session = session

    async def store(self, value: bytes) -> dict[str, Any]:
        lease = await self.world.controller.lease.acquire()
        right: dict[str, Any] = {
            "session": self.session.id,
            "source": self.world.controller.source,
            "sequence": 0,
            "offset": 0,
            "lengths": [8, 4],
            "checksums": [zlib.crc32(value[:8]), zlib.crc32(value[8:])],
            "nonce": "nonce",
            "generation": lease.generation,
        }
        right["key"] = key_of(Reference(**right, key=""), "nonce", lease.generation)
        await self.world.kv.put(right["key"], value, lease)
        return right

    async def send(self, reference: dict[str, Any]) -> Ack:
        node = self.session._session.node
        return await self.world.remote.call_data(node, "reference", Reference(**reference), Ack, timeout=300)


VALUE = b"twelve bytes"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"session": "another"}, Exception),
        ({"source": "another"}, ReferenceRefused),
        ({"nonce": "another"}, ReferenceRefused),
        ({"generation": 99}, ReferenceRefused),
        ({"key": "write-00"}, ReferenceRefused),
        ({"sequence": 1}, ReferenceRefused),
        ({"offset": 1}, ReferenceRefused),
        ({"lengths": [4, 8]}, ReferenceRefused),
        ({"lengths": [12]}, FrameRefused),
        ({"lengths": []}, FrameRefused),
        ({"lengths": [9, 3]}, FrameRefused),
        ({"lengths": [0, 12]}, FrameRefused),
        ({"lengths": [1] * 5, "checksums": [0] * 5}, FrameRefused),
        ({"offset": MAX_OFFSET - 4}, FrameRefused),
        ({"sequence": -1}, FrameRefused),
        ({"checksums": [1]}, FrameRefused),
    ],
    ids=str,
)
def test_ws8_a_forged_reference_is_refused_before_anything_is_fetched(
    play: Play, change: dict[str, Any], error: type[Exception]
) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        forger = Forger(world, session)
        right = await forger.store(VALUE)
        fetched: list[str] = []
        world.kv.on_get = fetched.append
        with pytest.raises(error):
            await forger.send({**right, **change})
        assert fetched == []
        await forger.send(right)  # the session is none the worse
        await world.kv.delete(right["key"])

    play(story)


def test_ws8_lengths_that_the_value_does_not_have_are_refused(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        forger = Forger(world, session)
        right = await forger.store(VALUE)
        lease = await world.controller.lease.acquire()
        await world.kv.put(right["key"], VALUE[:11], lease)
        with pytest.raises(FrameRefused, match="11 bytes is announced as 12"):
            await forger.send(right)
        await world.kv.delete(right["key"])

    play(story)


def test_ws8_an_agent_fetches_for_10_seconds_at_most(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        forger = Forger(world, session)
        right = await forger.store(VALUE)

        async def hang(_key: str) -> None:
            await asyncio.sleep(1_000)

        world.kv.get = hang  # type: ignore[assignment, method-assign]
        began = asyncio.get_running_loop().time()
        with pytest.raises(PayloadMissing, match="10 s"):
            await forger.send(right)
        assert asyncio.get_running_loop().time() - began == pytest.approx(10, abs=0.1)
        del world.kv.get
        await world.kv.delete(right["key"])

    play(story)


def way(session: WriteSession) -> str:
    return session.progress.path


def fail_put(world: World) -> None:
    world.kv.fail_puts = 1


def hang_put(world: World) -> None:
    world.kv.hang_puts = True


def fail_get(world: World) -> None:
    world.kv.fail_gets = 1


def lose_value(world: World) -> None:
    world.kv.lose_gets = 1


def flip_byte(world: World) -> None:
    world.kv.flip_gets = 1


def fail_reference(world: World) -> None:
    world.plan.add(Fault.FAIL, on="request", when=on_data)


def lose_ack(world: World) -> None:
    world.plan.add(Fault.FAIL_AFTER, on="request", when=on_data)


def lose_lease(world: World) -> None:
    registration = world.controller.lease._registration
    assert registration is not None
    registration.lose(LeaseLost("it ended"))


TROUBLES = [fail_put, hang_put, fail_get, lose_value, flip_byte, fail_reference, lose_ack, lose_lease]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda each: each.__name__)
def test_ws9_any_failure_of_the_reference_turns_the_session_raw_for_good(play: Play, trouble: Any) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:64])
        await session.wait()
        assert way(session) == "KV-ref"
        trouble(world)
        await session.submit(64, DATA[64:96])
        await session.wait()
        world.kv.hang_puts = False
        assert way(session) == "Raw"
        puts = len(world.kv.puts)
        await session.submit(96, DATA[96:])
        await session.finalize()
        assert world.read("x") == DATA
        assert len(world.kv.puts) == puts
        assert len(world.events("session.degraded")) == 1

    play(story, leftovers=trouble is hang_put)


def test_ws9_nothing_is_written_twice_when_the_acknowledgement_is_lost(play: Play) -> None:
    async def story(world: World) -> None:
        written: list[int] = []

        async def counting(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if function.__name__ == "write":
                written.append(args[1])
            return function(*args, **kwargs)

        world.agent.sessions._offload = counting
        session = await world.controller.open_session("data", "x")
        lose_ack(world)
        await session.submit(0, DATA[:96])
        await session.finalize()
        assert written == list(range(0, 96, 8))
        assert world.read("x") == DATA[:96]

    play(story)


def test_ws9_a_session_that_degrades_leaves_the_others_alone(play: Play) -> None:
    async def story(world: World) -> None:
        first = await world.controller.open_session("data", "x")
        second = await world.controller.open_session("data", "y")
        world.kv.fail_puts = 1
        await first.submit(0, DATA)
        await first.wait()
        await second.submit(0, DATA)
        await second.wait()
        assert (way(first), way(second)) == ("Raw", "KV-ref")
        await first.finalize()
        await second.finalize()

    play(story)


def test_ls5_ws9_when_the_shared_lease_fails_every_session_degrades_and_new_ones_begin_so(play: Play) -> None:
    async def story(world: World) -> None:
        sessions = [await world.controller.open_session("data", name) for name in "xy"]
        for session in sessions:
            await session.submit(0, DATA[:32])
            await session.wait()
        lose_lease(world)
        sessions.append(await world.controller.open_session("data", "z"))
        assert [way(session) for session in sessions] == ["Raw"] * 3
        for session in sessions:
            await session.finalize()

    play(story)


def test_ls5_one_lease_serves_all_sessions_and_outlives_them(play: Play) -> None:
    async def story(world: World) -> None:
        generations = set()
        for name in "xyz":
            await world.put(name, DATA)
            assert world.controller.lease.current is not None
            generations.add(world.controller.lease.current.generation)
            await asyncio.sleep(100)
        assert len(generations) == 1

    play(story)


def test_tk3_the_65th_key_is_refused_and_only_that_batch_goes_raw(play: Play) -> None:
    async def story(world: World) -> None:
        lease = await world.controller.lease.acquire()
        tickets = [world.controller.keys.begin_put(f"write-{n}", b"v", lease) for n in range(64)]
        session = await world.controller.open_session("data", "x")
        await session.submit(0, DATA[:32])
        await session.wait()
        assert way(session) == "KV-ref"
        puts = len(world.kv.puts)
        for ticket in tickets:
            ticket.drop()
        await asyncio.sleep(1)
        await session.submit(32, DATA[32:64])
        await session.finalize()
        assert len(world.kv.puts) > puts
        assert world.read("x") == DATA[:64]

    play(story)


def test_ws9_forced_raw_puts_nothing_into_the_store(play: Play) -> None:
    async def story(world: World) -> None:
        await world.put("x", DATA)
        assert [key for key in world.kv.puts if key.startswith("write-")] == []
        assert world.read("x") == DATA

    play(story, payload="raw")


def test_ws8_a_frame_that_never_gets_through_ends_with_the_control_timeout(play: Play) -> None:
    async def story(world: World) -> None:
        session = await world.controller.open_session("data", "x")
        world.plan.add(Fault.FAIL, on="request", when=on_data, times=None, error=lambda _call: Retryable("no way"))
        await session.submit(0, DATA[:8])
        began = asyncio.get_running_loop().time()
        with pytest.raises(Exception, match="frame 0 is not acknowledged"):
            await session.finalize()
        assert 240 <= asyncio.get_running_loop().time() - began < 260

    play(story)
