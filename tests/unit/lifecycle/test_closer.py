from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from stagewire import StillHeld
from stagewire.lifecycle import CloseFailed, CloseOutcome, Closer, Phases, TaskRegistry
from stagewire.testing import SweepRun, run_virtual, sweep_cancels


class Resource:
    """Closes after a second, fails as often as it is told, and notes two attempts at once."""

    def __init__(self, *, failures: int = 0, log: Any = None) -> None:
        self.failures = failures
        self.attempts: list[float] = []
        self.at_once = self.most_at_once = 0
        self.released = 0
        self.closer = Closer(self.attempt, name="the store", held=lambda: ["slot 1", "slot 2"], log=log)

    async def attempt(self) -> None:
        self.attempts.append(now())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(1)
            if len(self.attempts) <= self.failures:
                raise OSError(f"stuck {len(self.attempts)}")
            self.released += 1
        finally:
            self.at_once -= 1


def now() -> float:
    return asyncio.get_running_loop().time()


def test_sd6_a_second_close_says_already_closed() -> None:
    async def main() -> None:
        resource = Resource()
        assert await resource.closer.close() is CloseOutcome.CLOSED
        assert await resource.closer.close() is CloseOutcome.ALREADY_CLOSED
        assert resource.released == 1
        assert now() == 1

    run_virtual(main())


def test_sd6_concurrent_closes_share_one_attempt() -> None:
    async def main() -> None:
        resource = Resource()
        assert await asyncio.gather(*(resource.closer.close() for _ in range(5))) == [CloseOutcome.CLOSED] * 5
        assert len(resource.attempts) == resource.most_at_once == resource.released == 1

    run_virtual(main())


def test_sd6_a_failed_attempt_is_retried_by_the_owner_every_100_ms() -> None:
    async def main() -> None:
        resource = Resource(failures=3)
        with pytest.raises(CloseFailed, match="attempt 1 to close the store failed: OSError: stuck 1") as caught:
            await resource.closer.close()
        assert isinstance(caught.value.__cause__, OSError)
        await asyncio.sleep(100)
        assert resource.attempts == pytest.approx([0, 1.1, 2.2, 3.3])
        assert resource.closer.closed

    run_virtual(main())


def test_sd6_a_later_close_waits_for_a_later_attempt() -> None:
    async def main() -> None:
        resource = Resource(failures=2)
        for number in (1, 2):
            with pytest.raises(CloseFailed) as caught:
                await resource.closer.close()
            assert caught.value.attempt == number
        assert await resource.closer.close() is CloseOutcome.CLOSED
        assert len(resource.attempts) == 3

    run_virtual(main())


def test_sd6_a_close_may_wait_through_failures() -> None:
    async def main() -> None:
        resource = Resource(failures=2)
        assert await resource.closer.close(persist=True) is CloseOutcome.CLOSED
        assert now() == pytest.approx(3.2)

    run_virtual(main())


def test_sd6_an_attempt_that_was_itself_cancelled_has_failed_and_is_tried_again() -> None:
    async def main() -> None:
        attempts: list[int] = []

        async def attempt() -> None:
            attempts.append(1)
            if len(attempts) == 1:
                raise asyncio.CancelledError

        closer = Closer(attempt, name="the store")
        with pytest.raises(CloseFailed):
            await closer.close()
        await asyncio.sleep(1)
        assert closer.closed, "by the owner, without being asked again"

    run_virtual(main())


def test_sd6_a_request_is_seen_at_once_and_starts_the_owner() -> None:
    async def main() -> None:
        resource = Resource()
        resource.closer.request("garbage collection")
        assert (resource.closer.requested, resource.closer.closed) == (True, False)
        resource.closer.request()
        await asyncio.sleep(2)
        assert resource.closer.closed
        resource.closer.request()
        await asyncio.sleep(2)
        assert len(resource.attempts) == 1

    run_virtual(main())


class Facade:
    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        resource.closer.guard(self)


def test_sd6_a_collected_facade_is_closed_by_the_same_owner() -> None:
    async def main() -> None:
        resource = Resource()
        facade = Facade(resource)
        await asyncio.sleep(10)
        assert not resource.closer.requested
        del facade
        gc.collect()
        await asyncio.sleep(10)
        assert resource.released == 1
        assert await resource.closer.close() is CloseOutcome.ALREADY_CLOSED

    run_virtual(main())


def test_sd6_a_facade_collected_after_its_close_is_not_closed_again() -> None:
    async def main() -> None:
        resource = Resource()
        facade = Facade(resource)
        await resource.closer.close()
        del facade
        gc.collect()
        await asyncio.sleep(10)
        assert resource.released == 1

    run_virtual(main())


def test_sd6_a_facade_may_be_collected_in_any_thread() -> None:
    async def main() -> None:
        resource, facades = Resource(), []
        facades.append(Facade(resource))
        drop = threading.Thread(target=facades.clear)
        drop.start()
        drop.join()
        gc.collect()
        await resource.closer.attempts.outcome_after(0)
        assert resource.released == 1

    asyncio.run(main(), debug=True)  # in which the loop refuses a call from another thread that is not made safely


def test_sd6_a_facade_collected_after_its_loop_is_reported(book: Any) -> None:
    async def main() -> Facade:
        return Facade(Resource(log=book.log))

    facade = run_virtual(main())
    assert not book.lines("close.abandoned")
    del facade
    gc.collect()
    (line,) = book.lines("close.abandoned")
    assert line["owner"] == "the store"


def test_sd6_an_owner_at_work_is_not_collected() -> None:
    async def main() -> None:
        released: list[int] = []

        async def attempt(gate: asyncio.Event) -> None:
            await gate.wait()
            released.append(1)

        def close_and_forget() -> weakref.ref[asyncio.Event]:
            gate = asyncio.Event()
            Closer(lambda: attempt(gate), name="the store").request()
            return weakref.ref(gate)

        gate = close_and_forget()
        await asyncio.sleep(1)
        gc.collect()
        alive = gate()
        assert alive is not None, "the owner was collected with what it waits for"
        alive.set()
        await asyncio.sleep(1)
        assert released

    run_virtual(main())


def test_sd6_an_owner_that_the_loop_cancelled_has_failed_and_the_next_close_starts_another() -> None:
    async def main() -> None:
        resource = Resource()
        waiter = asyncio.create_task(resource.closer.close())
        await asyncio.sleep(0.5)
        assert resource.closer._owner is not None
        resource.closer._owner.cancel()
        with pytest.raises(CloseFailed, match="cancelled the owner"):
            await waiter
        assert await resource.closer.close() is CloseOutcome.CLOSED
        assert len(resource.attempts) == 2

    run_virtual(main())


def test_sd6_an_owner_cancelled_before_it_began_wakes_its_waiters() -> None:
    async def main() -> None:
        resource = Resource()
        waiter = asyncio.create_task(resource.closer.close())
        resource.closer.request()
        assert resource.closer._owner is not None
        resource.closer._owner.cancel()
        with pytest.raises(CloseFailed):
            await waiter
        assert await resource.closer.close(persist=True) is CloseOutcome.CLOSED

    run_virtual(main())


def test_sd6_the_end_of_asyncio_run_ends_an_owner_that_never_succeeds() -> None:
    resource = Resource(failures=10**9)

    async def main() -> None:
        resource.closer.request()
        await asyncio.sleep(5)

    run_virtual(main())
    assert not resource.closer.closed
    assert resource.at_once == 0


def test_sd6_attempts_are_logged_but_ever_more_rarely(book: Any) -> None:
    async def main() -> None:
        resource = Resource(failures=20, log=book.log)
        await resource.closer.close(persist=True)

    run_virtual(main())
    assert [line["attempt"] for line in book.lines("close.failed")] == [1, 2, 4, 8, 16]
    assert book.lines("close.failed")[0]["cause"] == "OSError: stuck 1"
    assert [line["attempt"] for line in book.lines("close.finished")] == [21]


def test_sd7_a_deadline_that_passes_leaves_the_owner_at_work_and_names_what_is_held() -> None:
    async def main() -> None:
        resource = Resource()
        with pytest.raises(StillHeld, match="the store was not released in time; still held: slot 1, slot 2") as caught:
            await resource.closer.close(timeout=0.4)
        assert caught.value.held == ("slot 1", "slot 2")
        assert now() == 0.4
        assert await resource.closer.close(timeout=0.6) is CloseOutcome.CLOSED, "joined the attempt under way"
        assert resource.attempts == [0]
        assert resource.closer.held == ()

    run_virtual(main())


def test_sd7_a_deadline_bounds_a_close_that_waits_through_failures() -> None:
    async def main() -> None:
        resource = Resource(failures=10)
        with pytest.raises(StillHeld):
            await resource.closer.close(timeout=5, persist=True)
        await resource.closer.close(persist=True)
        assert len(resource.attempts) == 11

    run_virtual(main())


def test_sd7_what_is_still_used_is_not_freed() -> None:
    async def main() -> None:
        order: list[str] = []
        tasks, unused = TaskRegistry("readers of the store"), asyncio.Event()

        async def read() -> None:
            while not unused.is_set():
                try:
                    await unused.wait()
                except asyncio.CancelledError:
                    order.append("asked to stop")
            order.append("reader ends")

        async def unmap() -> None:
            order.append("unmapped")

        phases = Phases("close", [("readers", lambda: tasks.drain(1)), ("unmap", unmap)])
        closer = Closer(phases.run, name="the store", held=lambda: phases.remaining)
        tasks.spawn(read(), name="reader")
        with pytest.raises(StillHeld) as caught:
            await closer.close(timeout=30, persist=True)
        assert caught.value.held == ("readers", "unmap")
        assert set(order) == {"asked to stop"}
        unused.set()
        await closer.close(persist=True)
        assert order[-2:] == ["reader ends", "unmapped"]

    run_virtual(main())


class World:
    """A store whose close has three steps, one of which fails the first time."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.failures = 1
        self.tasks = TaskRegistry("demo")
        self.tasks.spawn(asyncio.sleep(3), name="background")
        steps = [("flush", self.flush), ("tasks", lambda: self.tasks.drain(1)), ("unmap", self.unmap)]
        self.closer = Closer(Phases("close", steps).run, name="the store")

    async def flush(self) -> None:
        await asyncio.sleep(1)
        if self.failures:
            self.failures -= 1
            raise OSError("disk is full")
        self.done.append("flush")

    async def unmap(self) -> None:
        assert not len(self.tasks), "unmapped under a running task"
        await asyncio.sleep(1)
        self.done.append("unmap")

    async def check(self) -> None:
        await self.closer.close(persist=True)
        assert self.done == ["flush", "unmap"], "each once, in order"
        assert await self.closer.close() is CloseOutcome.ALREADY_CLOSED
        await asyncio.sleep(0)


async def check_closed(world: World, _run: SweepRun) -> None:
    await world.check()


def test_sd6_a_cancel_of_the_caller_at_any_tick_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        await asyncio.gather(world.closer.close(), world.closer.close(persist=True), return_exceptions=True)

    assert sweep_cancels(World, scenario, check_closed, cancels=2).hits


def test_sd6_a_cancel_of_the_owner_at_any_tick_repeats_no_step() -> None:
    async def scenario(world: World) -> None:
        await asyncio.gather(world.closer.close(persist=True), return_exceptions=True)

    assert sweep_cancels(World, scenario, check_closed, victim=lambda world: world.closer._owner).hits


def test_sd7_a_cancel_at_any_tick_of_a_close_with_a_deadline_keeps_authority() -> None:
    async def scenario(world: World) -> None:
        await world.closer.close(timeout=2.5, persist=True)

    assert sweep_cancels(World, scenario, check_closed).hits
