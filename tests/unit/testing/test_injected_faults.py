from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from stagewire import ChunkKey, ChunkLink, ChunkMessage, Message, Permanent, Retryable
from stagewire.testing import Fault, FaultPlan, FaultyBatchTransport, FaultyTransport, Gate, run_virtual, with_faults
from stagewire_local import LocalTransport


class Recorder:
    """A chunk transport of a few lines that keeps what was put."""

    def __init__(self) -> None:
        self.puts: list[int] = []
        self.held: dict[str, ChunkMessage] = {}
        self.cleaned: list[str] = []
        self.closed = False

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        self.puts.append(key.chunk)
        self.held[key] = message

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        return self.held.pop(key, None)

    def cleanup(self, request_id: str) -> None:
        self.cleaned.append(request_id)

    def close(self) -> None:
        self.closed = True


def key(chunk: int) -> ChunkKey:
    return ChunkKey("r", 0, chunk)


MESSAGE: ChunkMessage = {"data": "x", "finished": False}


def faulty(plan: FaultPlan, **options: Any) -> tuple[FaultyTransport, Recorder]:
    inner = Recorder()
    return FaultyTransport(inner, plan, **options), inner


def put(transport: FaultyTransport, count: int) -> list[Exception | None]:
    results: list[Exception | None] = []
    for number in range(count):
        try:
            transport.put(key(number), MESSAGE)
        except Retryable as error:
            results.append(error)
        else:
            results.append(None)
    return results


def only(chunk: int) -> Callable[[ChunkKey | str], bool]:
    return lambda subject: isinstance(subject, ChunkKey) and subject.chunk == chunk


@pytest.mark.parametrize(
    ("fault", "puts", "failed"),
    [
        (Fault.DROP, [0, 2, 3], []),
        (Fault.DUPLICATE, [0, 1, 1, 2, 3], []),
        (Fault.REORDER, [0, 2, 1, 3], []),
        (Fault.FAIL, [0, 2, 3], [1]),
        (Fault.FAIL_AFTER, [0, 1, 2, 3], [1]),
        (Fault.DELAY, [0, 1, 2, 3], []),
    ],
)
def test_a_put_goes_wrong_as_planned(fault: Fault, puts: list[int], failed: list[int]) -> None:
    slept: list[float] = []
    plan = FaultPlan().add(fault, when=only(1), seconds=0.5)
    transport, inner = faulty(plan, sleep=slept.append)
    results = put(transport, 4)
    assert inner.puts == puts
    assert [number for number, result in enumerate(results) if result is not None] == failed
    assert slept == ([0.5] if fault is Fault.DELAY else [])
    assert plan.injected == {fault: 1}


def test_an_error_says_what_was_injected_and_may_be_chosen() -> None:
    plan = FaultPlan().add(Fault.FAIL).add(Fault.FAIL, error=lambda call: Permanent(f"no {call.operation}"))
    transport, _ = faulty(plan)
    with pytest.raises(Retryable, match="injected failure of put 'r_0_0'"):
        transport.put(key(0), MESSAGE)
    with pytest.raises(Permanent, match="no put"):
        transport.put(key(0), MESSAGE)


def test_what_waits_to_be_overtaken_goes_out_at_the_end() -> None:
    transport, inner = faulty(FaultPlan().add(Fault.REORDER, times=2))
    put(transport, 2)
    assert inner.puts == []
    transport.close()
    assert inner.puts == [0, 1]
    assert inner.closed


@pytest.mark.parametrize(
    ("fault", "first", "second"),
    [(Fault.DROP, None, None), (Fault.DUPLICATE, "x", "x"), (Fault.REORDER, None, "x"), (Fault.DELAY, "x", None)],
)
def test_a_get_goes_wrong_as_planned(fault: Fault, first: str | None, second: str | None) -> None:
    transport, _ = faulty(FaultPlan().add(fault, on="get"), sleep=lambda _seconds: None)
    transport.put(key(0), MESSAGE)
    got = [transport.get(key(0)) for _ in range(3)]
    assert [message["data"] if message else None for message in got] == [first, second, None]


@pytest.mark.parametrize(("fault", "after"), [(Fault.FAIL, True), (Fault.FAIL_AFTER, False)])
def test_a_get_fails_before_or_after_it_took(fault: Fault, *, after: bool) -> None:
    transport, _ = faulty(FaultPlan().add(fault, on="get"))
    transport.put(key(0), MESSAGE)
    with pytest.raises(Retryable):
        transport.get(key(0))
    assert (transport.get(key(0)) is not None) is after


def test_a_cleanup_goes_wrong_as_planned() -> None:
    transport, inner = faulty(FaultPlan().add(Fault.DROP, on="cleanup").add(Fault.FAIL, on="cleanup"))
    transport.cleanup("dropped")
    with pytest.raises(Retryable):
        transport.cleanup("failed")
    transport.cleanup("done")
    assert inner.cleaned == ["done"]


def test_a_hanging_put_goes_on_when_released_and_other_threads_pass() -> None:
    plan = FaultPlan().add(Fault.HANG, when=only(0))
    transport, inner = faulty(plan)
    thread = threading.Thread(target=transport.put, args=(key(0), MESSAGE))
    thread.start()
    plan.gate.wait_held()
    transport.put(key(1), MESSAGE)
    assert inner.puts == [1]
    plan.release()
    thread.join(10)
    assert inner.puts == [1, 0]
    assert plan.gate.waiting == 0


def test_waiting_for_a_hang_that_does_not_come_ends() -> None:
    with pytest.raises(TimeoutError, match="0 of 1 calls hang"):
        Gate().wait_held(timeout=0.01)


def test_rules_are_used_up_in_order_and_can_be_cleared() -> None:
    plan = FaultPlan().add(Fault.DROP, times=2).add(Fault.FAIL, times=None)
    transport, inner = faulty(plan)
    assert [result is None for result in put(transport, 4)] == [True, True, False, False]
    plan.clear()
    put(transport, 2)
    assert inner.puts == [0, 1]


def test_random_faults_can_be_had_again() -> None:
    def run(seed: int) -> tuple[list[int], dict[Fault, int]]:
        plan = FaultPlan(seed=seed, rates={Fault.DROP: 0.2, Fault.DUPLICATE: 0.2, Fault.FAIL: 0.1})
        transport, inner = faulty(plan)
        put(transport, 300)
        return inner.puts, dict(plan.injected)

    assert run(1) == run(1)
    assert run(1) != run(2)
    counts = run(1)[1]
    assert 40 < counts[Fault.DROP] < 80
    assert 15 < counts[Fault.FAIL] < 50
    with pytest.raises(ValueError, match="need a seed"):
        FaultPlan(rates={Fault.DROP: 1})


def test_optional_methods_are_there_if_the_wrapped_one_has_them() -> None:
    transport, _ = faulty(FaultPlan())
    for name in ("put_many", "get_many", "set_wakeup"):
        assert not hasattr(transport, name)
    full = FaultyTransport(LocalTransport().chunks(ChunkLink("e", 0, 1)), FaultPlan().add(Fault.FAIL, when=only(1)))
    woken: list[bool] = []
    full.set_wakeup(lambda *_: woken.append(True))
    assert [type(result) for result in full.put_many([(key(n), MESSAGE) for n in range(3)])] == [
        type(None),
        Retryable,
        type(None),
    ]
    assert woken
    assert len(full.get_many(key(0), 3)) == 1
    assert full.get_many(key(1), 3) == []


async def boxes(plan: FaultPlan) -> FaultyBatchTransport:
    transport = with_faults(LocalTransport(), plan)
    await transport.open()
    batches = transport.batches()
    assert isinstance(batches, FaultyBatchTransport)
    return batches


async def take(batches: FaultyBatchTransport, limit: int = 9) -> list[Any]:
    async with batches.get_batch("box", limit=limit, timeout=0) as batch:
        return [delivery.message.payload for delivery in batch]


@pytest.mark.parametrize(
    ("fault", "arrives"),
    [
        (Fault.DROP, [0, 2]),
        (Fault.DUPLICATE, [0, 1, 1, 2]),
        (Fault.REORDER, [0, 2, 1]),
        (Fault.FAIL, [0, 2]),
        (Fault.FAIL_AFTER, [0, 1, 2]),
        (Fault.DELAY, [0, 1, 2]),
    ],
)
def test_a_put_batch_goes_wrong_as_planned(fault: Fault, arrives: list[int]) -> None:
    async def main() -> None:
        plan = FaultPlan()
        batches = await boxes(plan)
        for number in range(3):
            if number == 1:
                plan.add(fault, seconds=5)
            try:
                await batches.put_batch("box", [Message(number)])
            except Retryable:
                assert fault in (Fault.FAIL, Fault.FAIL_AFTER)
        assert await take(batches) == arrives
        assert asyncio.get_running_loop().time() == (5 if fault is Fault.DELAY else 0)

    run_virtual(main())


@pytest.mark.parametrize(
    ("fault", "first", "second"),
    [
        (Fault.DROP, [], []),
        (Fault.DUPLICATE, [1, 2], [1, 2]),
        (Fault.REORDER, [2, 1], []),
        (Fault.DELAY, [1, 2], []),
    ],
)
def test_a_get_batch_goes_wrong_as_planned(fault: Fault, first: list[int], second: list[int]) -> None:
    async def main() -> None:
        batches = await boxes(FaultPlan().add(fault, on="get", seconds=5))
        await batches.put_batch("box", [Message(1), Message(2)])
        assert [await take(batches), await take(batches)] == [first, second]

    run_virtual(main())


@pytest.mark.parametrize("fault", [Fault.FAIL, Fault.FAIL_AFTER])
def test_a_get_batch_that_fails_loses_nothing(fault: Fault) -> None:
    async def main() -> None:
        batches = await boxes(FaultPlan().add(fault, on="get"))
        await batches.put_batch("box", [Message(1)])
        with pytest.raises(Retryable):
            await take(batches)
        assert await take(batches) == [1]

    run_virtual(main())


def test_a_request_goes_wrong_as_planned() -> None:
    async def main() -> None:
        plan = FaultPlan().add(Fault.DROP, on="request").add(Fault.HANG, on="request")
        batches = await boxes(plan)
        with pytest.raises(Retryable, match="was dropped"):
            await batches.request("box", Message(1), timeout=1)
        asking = asyncio.create_task(batches.request("box", Message(2), timeout=1))
        await asyncio.sleep(100)
        assert plan.gate.waiting == 1
        assert await batches.purge("box") == 0
        plan.release()
        await asyncio.sleep(0)
        async with batches.get_batch("box") as batch:
            await batch[0].reply("answer")
        assert (await asking).payload == "answer"
        hanging = asyncio.create_task(batches.request("box", Message(3), timeout=1))
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)

    run_virtual(main())


def test_a_whole_transport_goes_wrong_by_one_plan() -> None:
    async def main() -> None:
        plan = FaultPlan().add(Fault.FAIL, times=2)
        transport = with_faults(LocalTransport(), plan)
        await transport.open()
        assert transport.batches() is transport.batches()
        chunks = transport.chunks(ChunkLink("edge", 0, 1))
        with pytest.raises(Retryable):
            chunks.put(key(0), MESSAGE)
        with pytest.raises(Retryable):
            await transport.batches().put_batch("box", [Message(1)])
        chunks.put(key(0), MESSAGE)
        assert transport.stats()["edge"]["puts"] == 1
        chunks.get(key(0))
        await transport.close()

    asyncio.run(main())
