"""Room in a mailbox: bounded, first come first served, nothing lost to a cancel or a timeout."""

from __future__ import annotations

import asyncio

import pytest

from stagewire import Closed, Permanent, TransportFull
from stagewire.testing import SweepRun, run_virtual, sweep_cancels
from stagewire_rabbitmq.handled import PAUSE, Handled
from stagewire_rabbitmq.mailbox import MailFrame
from stagewire_rabbitmq.room import Room


def test_tr5_a_full_mailbox_makes_the_producer_wait_until_a_batch_was_handled() -> None:
    async def main() -> None:
        room = Room("jobs", 3)
        first = await room.take(2, 1)
        waiting = asyncio.create_task(room.take(2, 1))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        room.free([first])
        assert await waiting != first

    run_virtual(main())


def test_tr5_whoever_waits_too_long_is_told_and_stands_in_nobodys_way() -> None:
    async def main() -> None:
        room = Room("jobs", 3)
        first = await room.take(2, 1)
        large = asyncio.create_task(room.take(3, 1))
        await asyncio.sleep(0)
        small = asyncio.create_task(room.take(1, 5))
        with pytest.raises(TransportFull, match="mailbox 'jobs' holds 2 messages that nobody has handled"):
            await large
        assert await small > first, "the small one waited behind the large one, and fits once that has gone"

    run_virtual(main())


def test_tr5_a_batch_that_can_never_fit_is_refused_at_once() -> None:
    async def main() -> None:
        with pytest.raises(Permanent, match="put smaller batches"):
            await Room("jobs", 3).take(4, 1)

    run_virtual(main())


def test_tr5_writing_off_lets_the_older_half_go() -> None:
    async def main() -> None:
        room = Room("jobs", 3)
        for _ in range(3):
            await room.take(1, 1)
        room.write_off()
        assert room.freed == 2
        await room.take(2, 1)

    run_virtual(main())


def test_tr11_closing_wakes_whoever_waits() -> None:
    async def main() -> None:
        room = Room("jobs", 1)
        await room.take(1, 1)
        waiting = asyncio.create_task(room.take(1, 1))
        await asyncio.sleep(0)
        room.fail(Closed("the transport was closed"))
        with pytest.raises(Closed):
            await waiting
        with pytest.raises(Closed):
            await room.take(1, 1)

    run_virtual(main())


def test_tr5_a_cancel_at_any_moment_loses_no_room() -> None:
    async def scenario(room: Room) -> None:
        first = await room.take(2, 1)
        asyncio.get_running_loop().call_later(0.1, room.free, [first])
        second = await room.take(2, 1)
        room.free([second])

    async def check(room: Room, _run: SweepRun) -> None:
        await asyncio.sleep(1)
        room.free(range(1, 10))
        number = await room.take(2, 0.1)
        room.free([number])

    assert sweep_cancels(lambda: Room("jobs", 2), scenario, check).hits


def test_tr5_what_was_handled_is_told_a_few_at_a_time() -> None:
    async def main() -> None:
        told: list[tuple[str, bytes]] = []
        handled = Handled(3, lambda to, body: told.append((to, body)))
        handled.note("q", MailFrame(1, 1, 0, None, 1))
        for number in range(3):
            handled.note("q", MailFrame(1, 1, 0, "sender", number))
        assert len(told) == 1, "enough for one message"
        handled.note("q", MailFrame(1, 1, 0, "sender", 4))
        handled.note("p", MailFrame(1, 1, 0, "sender", 5))
        assert len(told) == 1
        await asyncio.sleep(PAUSE * 1.1)
        assert len(told) == 3
        handled.flush()
        assert len(told) == 3

    run_virtual(main())
