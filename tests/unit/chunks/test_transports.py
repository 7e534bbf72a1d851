"""Richer transports: at least once, putting together, handing out runs; and CH-17."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import ChunkKey, ChunkMessage, Permanent, TransportFull
from stagewire_chunks import ChunkAdapter, ChunkOptions

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import KeepingWire, Message, Pair, Wire

MakePair = Callable[..., "Pair"]
Parcel = tuple[ChunkKey, ChunkMessage]


class UnreliableWire:
    """At least once, in any order: what is put arrives when the test says so, perhaps again and again."""

    def __init__(self, schedule: random.Random) -> None:
        self.under_way: list[tuple[str, Message]] = []
        self.store: dict[str, Message] = {}
        self.asked: dict[str, int] = {}
        self._schedule = schedule

    def put(self, key: str, message: Message) -> None:
        self.under_way += [(key, message)] * self._schedule.choice([1, 1, 2, 3])

    def get(self, key: str) -> Message | None:
        found = self.store.pop(key, None)
        if found is not None:
            self.asked[key] = self.asked.get(key, 0) + 1
        return found

    def deliver(self) -> None:
        """Deliver some of what is under way, not in order."""
        self._schedule.shuffle(self.under_way)
        for _ in range(self._schedule.randint(0, len(self.under_way))):
            key, message = self.under_way.pop()
            self.store[key] = message


@given(st.integers(0, 10_000), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_ch17_redelivered_and_reordered_chunks_come_out_once_and_in_order(seed: int, lengths: list[int]) -> None:
    wire = UnreliableWire(random.Random(seed))
    adapter = ChunkAdapter(wire, 0, 0, threads=False)
    for number, length in enumerate(lengths):
        adapter.load_async(f"r{number}")
        for chunk in range(length):
            adapter.save_async(f"r{number}", chunk, chunk == length - 1)
    received: dict[str, list[int]] = {}
    while adapter.stats()["receiving"]:
        adapter.step_save()
        wire.deliver()
        adapter.step_receive()
        for request, messages in adapter.poll_ready().items():
            received.setdefault(request, []).extend(message["data"] for message in messages)
    assert received == {f"r{number}": list(range(length)) for number, length in enumerate(lengths)}
    assert set(wire.asked.values()) == {1}


def test_ch17_a_gap_that_is_not_filled_ends_in_an_error_that_names_it(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, stall_timeout=5.0)
    pair.rcv.load_async("r")
    pair.save("r", 0, 1, 2, 3, final=True)
    pair.send()
    del wire.store["r_0_2"]
    pair.settle(10.0)
    assert pair.data("r") == [0, 1, None]
    assert "no chunk 2" in pair.received["r"][-1]["error"]


class ManyWire:
    """Puts together and hands out runs. ``refuse`` says what an item's result is."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.store: dict[str, ChunkMessage] = {}
        self.refuse: Callable[[ChunkKey, ChunkMessage], Exception | None] = lambda _key, _message: None
        self.runs: list[int] = []

    def put(self, key: ChunkKey, message: ChunkMessage) -> None:
        raise AssertionError("put_many is there")

    def get(self, key: ChunkKey) -> ChunkMessage | None:
        raise AssertionError("get_many is there")

    def put_many(self, items: Sequence[Parcel]) -> list[Exception | None]:
        self.batches.append([str(key) for key, _ in items])
        results = [self.refuse(key, message) for key, message in items]
        self.store.update({key: message for (key, message), error in zip(items, results, strict=True) if not error})
        return results

    def get_many(self, key: ChunkKey, limit: int) -> list[ChunkMessage]:
        run: list[ChunkMessage] = []
        while len(run) < limit:
            message = self.store.pop(ChunkKey(key.request, key.stage, key.chunk + len(run)), None)
            if message is None:
                break
            run.append(message)
            if message["finished"]:
                break
        self.runs.append(len(run))
        return run


def test_chunks_that_wait_are_put_together_and_got_in_runs(make_pair: MakePair) -> None:
    wire = ManyWire()
    pair = make_pair(wire)
    pair.rcv.load_async("a")
    pair.save("a", 0, 1)
    pair.save("b", 0)
    pair.save("a", 2, final=True)
    pair.settle()
    assert wire.batches == [["a_0_0", "a_0_1", "b_0_0", "a_0_2"]]
    assert pair.data("a") == [0, 1, 2]
    assert wire.runs == [3]
    pair.rcv.assert_quiescent()


def test_with_a_builder_no_chunk_waits_for_the_build_of_another(make_pair: MakePair) -> None:
    class Both(ManyWire):
        def put(self, key: ChunkKey, message: ChunkMessage) -> None:
            self.put_many([(key, message)])

    wire = Both()
    seen: list[int] = []

    def build(payload: Any) -> Any:
        seen.append(len(wire.batches))
        return payload

    pair = make_pair(wire, build=build)
    pair.save("a", 0, 1, 2)
    pair.send()
    assert seen == [0, 1, 2]


def test_ch15_a_failure_within_a_batch_touches_no_other_request_and_keeps_the_order(make_pair: MakePair) -> None:
    wire = ManyWire()
    left = [2]

    def refuse(key: ChunkKey, _message: ChunkMessage) -> Exception | None:
        if key == "bad_0_1" and left[0]:
            left[0] -= 1
            return ConnectionError("down")
        return None

    wire.refuse = refuse
    pair = make_pair(wire)
    for request in ("bad", "good"):
        pair.rcv.load_async(request)
    for number in range(4):
        pair.save("bad", number, final=number == 3)
        pair.save("good", number, final=number == 3)
    pair.send()
    pair.receive()
    pair.poll()
    assert pair.data("good") == [0, 1, 2, 3]
    pair.settle()
    assert pair.data("bad") == [0, 1, 2, 3]
    assert wire.batches[1] == ["bad_0_1", "bad_0_2", "bad_0_3"]
    pair.assert_quiescent()


def test_ch7_ch15_the_next_use_of_an_id_is_never_in_one_batch_with_the_last(make_pair: MakePair) -> None:
    """Its first chunk would overtake a terminal that is refused."""
    wire = ManyWire()
    left = [1]

    def refuse(_key: ChunkKey, message: ChunkMessage) -> Exception | None:
        if message["data"] == "end" and left[0]:
            left[0] -= 1
            return TransportFull("full")
        return None

    wire.refuse = refuse
    pair = make_pair(wire)
    pair.save("r", "x", "end", final=True)
    pair.save("r", "next", final=True)
    pair.save("other", "o", final=True)
    pair.settle()
    assert wire.batches[0] == ["r_0_0", "r_0_1"]
    assert wire.batches[-1] == ["r_0_0"]
    assert [key for batch in wire.batches for key in batch].count("r_0_1") == 2
    pair.snd.assert_quiescent()


def test_ch15_a_batch_that_fails_whole_is_put_again_whole(make_pair: MakePair) -> None:
    wire = ManyWire()
    put_many, left = wire.put_many, [3]

    def fail(items: Sequence[Parcel]) -> list[Exception | None]:
        if left[0]:
            left[0] -= 1
            raise ConnectionError("down")
        return put_many(items)

    wire.put_many = fail  # type: ignore[method-assign]
    pair = make_pair(wire)
    for request in ("a", "b"):
        pair.rcv.load_async(request)
        pair.save(request, 0, 1, final=True)
    pair.settle()
    assert (pair.data("a"), pair.data("b")) == ([0, 1], [0, 1])
    assert pair.snd.stats()["puts"] == 4
    pair.assert_quiescent()


def test_ch15_ch18_a_hopeless_chunk_within_a_batch_ends_its_request_there(make_pair: MakePair) -> None:
    wire = ManyWire()
    wire.refuse = lambda _key, message: Permanent("no") if message["data"] == "poison" else None
    pair = make_pair(wire)
    pair.rcv.load_async("bad")
    pair.save("bad", 0, "poison", 2, "end", final=True)
    pair.settle()
    assert pair.data("bad") == [0, None]
    assert "Permanent: no" in pair.received["bad"][-1]["error"]
    assert list(pair.snd.poll_failed()) == ["bad"]
    pair.assert_quiescent()


@pytest.mark.parametrize("results", [[], [None], [None] * 3], ids=len)
def test_ch15_results_that_do_not_match_the_items_are_a_failure_of_all(
    results: list[Exception | None], make_pair: MakePair
) -> None:
    wire = ManyWire()
    put_many, left = wire.put_many, [1]

    def fail(items: Sequence[Parcel]) -> list[Exception | None]:
        if left[0]:
            left[0] -= 1
            return results
        return put_many(items)

    wire.put_many = fail  # type: ignore[method-assign]
    pair = make_pair(wire)
    pair.rcv.load_async("r")
    pair.save("r", 0, 1, final=True)
    pair.settle()
    assert pair.data("r") == [0, 1]
    assert pair.snd.stats()["retries"] == 1


def test_ch6_back_pressure_within_a_batch_leaves_the_rest_to_be_cancelled(make_pair: MakePair) -> None:
    wire = ManyWire()
    wire.refuse = lambda key, message: TransportFull("full") if key.chunk and not message["finished"] else None
    pair = make_pair(wire)
    pair.rcv.load_async("r")
    pair.save("r", 0, 1, 2, 3)
    pair.send()
    assert pair.snd.stats()["queued"] == 3
    pair.snd.cancel_sender("r")
    assert pair.snd.stats()["queued"] == 1
    pair.snd.save_async("r", "end", True)
    pair.settle()
    assert pair.received["r"] == [{"data": 0, "finished": False}, {"data": None, "finished": True}]


@pytest.mark.parametrize("arrived", [True, False])
def test_ch18_a_batch_in_doubt_cannot_hide_the_terminal(
    keeping_wire: KeepingWire, make_pair: MakePair, *, arrived: bool
) -> None:
    wire = keeping_wire
    wire.delivers_failures = arrived
    doubtful = [True]

    def put_many(items: Sequence[Parcel]) -> list[Exception | None]:
        results: list[Exception | None] = []
        for key, message in items:
            try:
                wire.put(key, message)
            except TimeoutError as error:
                results.append(error)
            else:
                results.append(None)
        return results

    def time_out(_key: ChunkKey, _message: Message) -> None:
        if doubtful[0]:
            raise TimeoutError("no confirm")

    wire.on_put = time_out
    wire.put_many = put_many  # type: ignore[attr-defined]
    pair = make_pair(wire)
    pair.rcv.load_async("r")
    pair.save("r", 0, 1, 2)
    pair.send()
    doubtful[0] = False
    pair.snd.cancel_sender("r")
    pair.settle()
    assert pair.data("r") == ([0, 1, 2, None] if arrived else [None])
    assert pair.received["r"][-1]["cancelled"]
    pair.assert_quiescent()


def test_the_options_reject_nonsense() -> None:
    with pytest.raises(ValueError, match="queue_chunks"):
        ChunkOptions(queue_chunks=0)
    with pytest.raises(ValueError, match="quue_chunks"):
        ChunkOptions(quue_chunks=1)  # type: ignore[call-arg]
