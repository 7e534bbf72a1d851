from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from stagewire import TransportFull
from stagewire_chunks import ChunkAdapter, ChunkOptions

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Collector, Gate, Pair, Wire

Make = Callable[..., ChunkAdapter]
MakePair = Callable[..., "Pair"]
Eventually = Callable[[Callable[[], object]], None]


@pytest.mark.parametrize(
    ("options", "payload", "bound"),
    [
        ({"queue_chunks": 3}, "x", "queue_chunks"),
        ({"request_chunks": 3}, "x", "request_chunks"),
        ({"queue_bytes": 3_500}, b"x" * 1_000, "queue_bytes is 3500"),
        ({"request_bytes": 3_500}, b"x" * 1_000, "request_bytes is 3500"),
    ],
)
def test_ch19_beyond_a_bound_save_says_so_at_once_and_names_it(
    options: dict[str, int], payload: object, bound: str, wire: Wire, make_pair: MakePair
) -> None:
    pair = make_pair(wire, **options)
    pair.save("r", payload, payload, payload)
    with pytest.raises(TransportFull, match=rf"request 'r'.*{bound}.*wait_for_room"):
        pair.save("r", payload)
    assert pair.snd.stats()["queued"] == 3
    pair.send()
    assert len(wire.puts) == 3


def test_ch19_a_final_is_always_admitted(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, queue_chunks=1)
    pair.save("r", 1)
    pair.save("r", "end", final=True)
    pair.save("other", "end", final=True)
    pair.send()
    assert wire.puts == ["r_0_0", "r_0_1", "other_0_0"]


def test_ch19_one_request_at_its_bound_leaves_room_for_others(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, request_chunks=2)
    pair.save("greedy", 1, 2)
    with pytest.raises(TransportFull):
        pair.save("greedy", 3)
    pair.save("modest", 1)


def test_ch19_a_chunk_larger_than_the_bound_is_taken_alone(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, request_bytes=100, queue_bytes=100)
    pair.save("r", b"x" * 1_000)
    with pytest.raises(TransportFull):
        pair.save("r", b"y")
    pair.send()
    pair.save("r", b"y")


def test_ch19_a_refused_save_leaves_no_trace(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, queue_chunks=1)
    pair.save("a", "end", final=True)
    with pytest.raises(TransportFull):
        pair.save("b", 1)
    pair.send()
    pair.assert_quiescent()


def test_ch19_on_room_tells_the_refused_once_there_is_room(wire: Wire, make_pair: MakePair) -> None:
    told: list[str] = []
    pair = make_pair(wire, queue_chunks=2, on_room=told.append)
    pair.save("a", 1, 2)
    for request in ("a", "b", "b"):
        with pytest.raises(TransportFull):
            pair.save(request, 3)
    assert not told
    pair.send()
    assert told == ["a", "b"]
    pair.save("b", 3)
    pair.send()
    assert told == ["a", "b"]


def test_ch19_room_is_room_for_what_was_refused(wire: Wire, make_adapter: Make) -> None:
    told: list[str] = []
    options = ChunkOptions.model_validate({"request_bytes": 1_000})
    snd = make_adapter(wire, 0, options=options, on_room=told.append, threads=False)
    for _ in range(3):
        snd.save_async("r", b"x" * 240, False)
    with pytest.raises(TransportFull):
        snd.save_async("r", b"y" * 500, False)
    assert not snd.wait_for_room("r", 0.0)
    snd.step_save()
    assert snd.wait_for_room("r", 0.0)
    assert told == ["r"]
    snd.save_async("r", b"y" * 500, False)


def test_ch19_on_room_may_save_again(wire: Wire, make_pair: MakePair) -> None:
    pair: Pair = make_pair(wire, queue_chunks=1, on_room=lambda request: pair.save(request, "again"))
    pair.save("a", 1)
    with pytest.raises(TransportFull):
        pair.save("a", 2)
    pair.send()
    assert [message["data"] for message in wire.messages] == [1, "again"]


def test_ch19_a_caller_can_wait_for_room(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], eventually: Eventually
) -> None:
    gate = make_gate()
    wire.on_put = gate
    snd = make_adapter(wire, 0, options=ChunkOptions(queue_chunks=1))
    snd.save_async("r", 1, False)
    gate.wait_for_visitor()
    assert not snd.wait_for_room("r", 0.0)
    results: list[bool] = []
    waiter = threading.Thread(target=lambda: results.append(snd.wait_for_room("r", 20.0)))
    waiter.start()
    eventually(lambda: snd._outbox._watched)
    gate.open()
    waiter.join(20.0)
    assert results == [True]


def test_ch19_ch12_a_stop_ends_the_wait_for_room(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], eventually: Eventually
) -> None:
    gate = make_gate()
    wire.on_put = gate
    snd = make_adapter(wire, 0, options=ChunkOptions(queue_chunks=1))
    snd.save_async("r", 1, False)
    gate.wait_for_visitor()
    results: list[bool] = []
    waiter = threading.Thread(target=lambda: results.append(snd.wait_for_room("r", 20.0)))
    waiter.start()
    eventually(lambda: snd._outbox._watched)
    snd.stop(timeout=0.0)
    waiter.join(20.0)
    assert results == [False]


def test_ch19_a_producer_that_waits_for_room_gets_everything_through(
    wire: Wire, make_adapter: Make, collect: Callable[[ChunkAdapter], Collector]
) -> None:
    snd = make_adapter(wire, 0, options=ChunkOptions(queue_chunks=8))
    rcv = make_adapter(wire, 1, 0)
    rcv.load_async("r")
    for number in range(2_000):
        while True:
            try:
                snd.save_async("r", number, False)
                break
            except TransportFull:
                assert snd.wait_for_room("r", 20.0)
    snd.save_async("r", "end", True)
    messages = collect(rcv).until_final("r")
    assert [message["data"] for message in messages] == [*range(2_000), "end"]
