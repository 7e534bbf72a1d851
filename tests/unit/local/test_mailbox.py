"""Waiting for messages and for room: fair, exact to the tick, and safe to cancel anywhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stagewire import Closed, Message, TransportFull
from stagewire.testing import SweepRun, run_virtual, sweep_cancels
from stagewire_local import LocalOptions, LocalTransport
from stagewire_local.batches import LocalBatches


def open_batches(**options: Any) -> LocalBatches:
    """Mailboxes on the running loop, with its virtual time as their clock."""
    clock = asyncio.get_running_loop().time
    batches = LocalTransport(LocalOptions.model_validate(options), clock=clock).batches()
    assert isinstance(batches, LocalBatches)
    batches.open()
    return batches


def numbers(*values: int) -> list[Message]:
    return [Message(value) for value in values]


async def take(batches: LocalBatches, limit: int = 1, timeout: float | None = None) -> list[Any]:
    async with batches.get_batch("box", limit=limit, timeout=timeout) as batch:
        return [delivery.message.payload for delivery in batch]


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_tr4_getters_are_served_in_the_order_in_which_they_came() -> None:
    async def main() -> None:
        batches = open_batches()
        getters = [asyncio.create_task(take(batches)) for _ in range(3)]
        await turns()
        await batches.put_batch("box", numbers(1, 2))
        await turns()
        assert [getter.done() for getter in getters] == [True, True, False], "nobody is woken for nothing"
        await batches.put_batch("box", numbers(3))
        assert await asyncio.gather(*getters) == [[1], [2], [3]]

    run_virtual(main())


def test_tr9_a_waiting_getter_takes_up_to_its_limit() -> None:
    async def main() -> None:
        batches = open_batches()
        getters = [asyncio.create_task(take(batches, limit)) for limit in (2, 5)]
        await turns()
        await batches.put_batch("box", numbers(1, 2, 3, 4))
        assert await asyncio.gather(*getters) == [[1, 2], [3, 4]]

    run_virtual(main())


def test_tr5_no_put_overtakes_one_that_waits() -> None:
    async def main() -> None:
        batches = open_batches(mailbox_messages=3)
        await batches.put_batch("box", numbers(1, 2))
        large = asyncio.create_task(batches.put_batch("box", numbers(3, 4, 5)))
        await turns()
        small = asyncio.create_task(batches.put_batch("box", numbers(6)))
        await turns()
        assert not small.done(), "there is room for it, but another came before"
        assert await take(batches, 2) == [1, 2]
        await large
        assert not small.done()
        assert await take(batches, 1) == [3]
        await small
        assert await take(batches, 5) == [4, 5, 6]

    run_virtual(main())


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_tr5_a_put_that_gives_up_lets_those_behind_it_pass(how: str) -> None:
    async def main() -> None:
        batches = open_batches(mailbox_messages=3)
        await batches.put_batch("box", numbers(1, 2))
        large = asyncio.create_task(batches.put_batch("box", numbers(3, 4), timeout=5))
        await turns()
        small = asyncio.create_task(batches.put_batch("box", numbers(5)))
        await turns()
        if how == "cancel":
            large.cancel()
        await small
        assert asyncio.get_running_loop().time() == pytest.approx(5 if how == "timeout" else 0)
        assert await take(batches, 5) == [1, 2, 5]
        outcome = (await asyncio.gather(large, return_exceptions=True))[0]
        assert type(outcome) is (TransportFull if how == "timeout" else asyncio.CancelledError)

    run_virtual(main())


def test_tr5_room_is_counted_in_bytes_too_and_messages_in_hand_count() -> None:
    async def main() -> None:
        batches = open_batches(mailbox_bytes=1000)
        await batches.put_batch("box", [Message(bytes(600))])
        async with batches.get_batch("box") as batch:
            assert len(batch) == 1
            with pytest.raises(TransportFull, match="stayed full for 1 s"):
                await batches.put_batch("box", [Message(bytes(600))], timeout=1)
        await batches.put_batch("box", [Message(bytes(600))], timeout=1)
        stats = batches.stats()["box"]
        assert stats["blocked_seconds"] == pytest.approx(1)
        assert (stats["full"], stats["outstanding"], stats["unread"]) == (1, 0, 1)

    run_virtual(main())


def test_tr2_a_getter_cancelled_as_it_is_handed_a_message_passes_it_on() -> None:
    async def main() -> None:
        batches = open_batches()
        first, second = (asyncio.create_task(take(batches)) for _ in range(2))
        await turns()
        await batches.put_batch("box", numbers(1))  # handed to the first, which has not run yet
        first.cancel()
        assert await second == [1]
        assert first.cancelled()
        stats = batches.stats()["box"]
        assert (stats["gets"], stats["redeliveries"], stats["outstanding"]) == (1, 0, 0)

    run_virtual(main())


@pytest.mark.parametrize("first", ["getter", "putter"])
def test_tr1_a_message_that_comes_with_the_timeout_is_taken_or_stays(first: str) -> None:
    async def get() -> None:
        got.extend(await take(batches_box[0], timeout=1))

    async def put() -> None:
        await asyncio.sleep(1)
        await batches_box[0].put_batch("box", numbers(1))

    got: list[int] = []
    batches_box: list[LocalBatches] = []

    async def main() -> None:
        batches_box.append(open_batches())
        await asyncio.gather(*([get(), put()] if first == "getter" else [put(), get()]))
        got.extend(await take(batches_box[0], timeout=0))
        assert got == [1]

    run_virtual(main())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_tr3_batches_given_back_in_any_order_come_again_in_theirs(order: tuple[int, int]) -> None:
    async def main() -> None:
        batches = open_batches()
        await batches.put_batch("box", numbers(1, 2, 3, 4))
        gates = [asyncio.Event(), asyncio.Event()]
        failing = [asyncio.create_task(fail_after(batches, gate)) for gate in gates]
        await turns()
        await batches.put_batch("box", numbers(5))
        for index in order:
            gates[index].set()
            await turns()
        assert await take(batches, 9) == [1, 2, 3, 4, 5]
        assert [type(result) for result in await asyncio.gather(*failing, return_exceptions=True)] == [ValueError] * 2

    async def fail_after(batches: LocalBatches, gate: asyncio.Event) -> None:
        async with batches.get_batch("box", limit=2):
            await gate.wait()
            raise ValueError

    run_virtual(main())


class World:
    """Consumers and a producer around one mailbox, and what became of the messages."""

    def __init__(self) -> None:
        self.batches = open_batches(mailbox_messages=3, redeliveries=99)
        self.handled: list[int] = []
        self.put: list[list[int]] = []
        self.victim: asyncio.Task[None] | None = None

    async def consume(self, count: int) -> None:
        for _ in range(count):
            async with self.batches.get_batch("box", limit=2, timeout=5) as batch:
                payloads = [delivery.message.payload for delivery in batch]
                await asyncio.sleep(0.1)
            self.handled += payloads

    async def produce(self, *sizes: int) -> None:
        number = 0
        for size in sizes:
            batch = list(range(number, number + size))
            number += size
            await self.batches.put_batch("box", numbers(*batch))
            self.put.append(batch)

    async def left(self) -> list[int]:
        return [payload for _ in range(9) for payload in await take(self.batches, 9, timeout=0)]


def test_tr2_a_consumer_cancelled_at_any_tick_loses_and_repeats_nothing() -> None:
    async def scenario(world: World) -> None:
        async with asyncio.TaskGroup() as group:
            world.victim = group.create_task(world.consume(9), name="victim")
            group.create_task(world.consume(9))
            group.create_task(world.produce(1, 2, 3, 1, 3))

    async def check(world: World, _run: SweepRun) -> None:
        seen = sorted(world.handled + await world.left())
        assert seen == list(range(10))
        stats = world.batches.stats()["box"]
        assert (stats["outstanding"], stats["unread"]) == (0, 0)

    result = sweep_cancels(World, scenario, check, victim=lambda world: world.victim)
    assert result.hits > 10


def test_tr1_a_producer_cancelled_at_any_tick_puts_whole_batches() -> None:
    async def scenario(world: World) -> None:
        async with asyncio.TaskGroup() as group:
            world.victim = group.create_task(world.produce(2, 3, 2, 3), name="victim")
            group.create_task(world.consume(9))

    async def check(world: World, _run: SweepRun) -> None:
        seen = world.handled + await world.left()
        whole = [number for batch in world.put for number in batch]
        following = [[], [2, 3, 4], [5, 6], [7, 8, 9], []][len(world.put)] if world.put else [0, 1]
        assert seen in (whole, whole + following), "the batch under way is in the mailbox or it is not"
        await world.batches.put_batch("box", numbers(1, 2, 3), timeout=0)

    result = sweep_cancels(World, scenario, check, victim=lambda world: world.victim)
    assert result.hits > 10


def test_tr11_close_wakes_getters_and_putters() -> None:
    async def main() -> None:
        batches = open_batches(mailbox_messages=1)
        await batches.put_batch("full", numbers(1))
        waiting = [asyncio.create_task(take(batches)), asyncio.create_task(batches.put_batch("full", numbers(2)))]
        asking = asyncio.create_task(batches.request("asked", Message(1), timeout=9))
        await turns()
        batches.close()
        outcomes = await asyncio.gather(*waiting, asking, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Closed] * 3
        assert asyncio.get_running_loop().time() == 0
        assert (batches.stats()["full"]["unread"], batches.stats()["asked"]["unread"]) == (1, 1)

    run_virtual(main())


def test_tr11_handlers_may_end_after_close() -> None:
    async def main() -> None:
        batches = open_batches()
        await batches.put_batch("box", numbers(1))
        async with batches.get_batch("box"):
            batches.close()
        with pytest.raises(Closed):
            batches.get_batch("box")

    run_virtual(main())
