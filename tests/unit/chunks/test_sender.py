from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import ChunkKey

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Builder, Collector, Gate, Message, Pair, Wire

    from stagewire_chunks import ChunkAdapter

Make = Callable[..., "ChunkAdapter"]
Collect = Callable[["ChunkAdapter"], "Collector"]
MakePair = Callable[..., "Pair"]


def test_ch1_save_enqueues_and_does_nothing_else(wire: Wire, make_pair: MakePair) -> None:
    built: list[Any] = []
    pair = make_pair(wire, build=built.append)
    pair.save("r", 1, 2, final=True)
    assert not built
    assert not wire.attempts
    assert pair.snd.stats()["queued"] == 2


def test_ch1_save_returns_while_a_put_is_blocked(wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate]) -> None:
    gate = make_gate()
    wire.on_put = gate
    snd = make_adapter(wire, 0)
    snd.save_async("r", 0, False)
    gate.wait_for_visitor()
    for number in range(1, 100):
        snd.save_async("r", number, False)  # the gate is closed: waiting for the put would never end
    assert snd.stats()["queued"] == 100
    gate.open()


def test_ch1_ch4_builds_and_puts_run_on_the_save_thread(wire: Wire, make_adapter: Make) -> None:
    threads: set[str] = set()
    wire.on_put = lambda _key, _message: threads.add(threading.current_thread().name)

    def build(payload: Any) -> Any:
        threads.add(threading.current_thread().name)
        return payload

    snd = make_adapter(wire, "tone", None, build)
    snd.save_async("r", 1, True)
    snd.assert_quiescent()
    assert threads == {"chunks-save-tone"}


def test_ch3_one_fifo_over_all_requests(wire: Wire, pair: Pair) -> None:
    for request in ("a", "a", "b", "a", "b", "c"):
        pair.save(request, "x")
    pair.send()
    assert wire.puts == ["a_0_0", "a_0_1", "b_0_0", "a_0_2", "b_0_1", "c_0_0"]


def test_ch3_the_id_advances_only_after_a_put_succeeded(wire: Wire, pair: Pair) -> None:
    failures = iter([True, True, False, False])

    def fail(_key: ChunkKey, _message: Message) -> None:
        if next(failures):
            raise ConnectionError("down")

    wire.on_put = fail
    pair.save("r", "x", "y")
    pair.settle(1)
    assert wire.attempts == ["r_0_0", "r_0_0", "r_0_0", "r_0_1"]
    assert [wire.store[key]["data"] for key in ("r_0_0", "r_0_1")] == ["x", "y"]


def test_ch3_requests_whose_texts_run_into_each_other_never_mix(wire: Wire, pair: Pair) -> None:
    names = ["a", "a_1", "a_0", "a_0_0", "_", ""]
    for name in names:
        pair.rcv.load_async(name)
        pair.save(name, f"first of {name}", f"last of {name}", final=True)
    pair.settle()
    assert {name: pair.data(name) for name in names} == {
        name: [f"first of {name}", f"last of {name}"] for name in names
    }
    keys = [key for key in wire.puts if isinstance(key, ChunkKey)]
    assert {(key.request, key.stage, key.chunk) for key in keys} == {(name, 0, n) for name in names for n in (0, 1)}


def test_ch4_none_is_skipped_unless_it_is_final(wire: Wire, pair: Pair) -> None:
    pair.save("r", "x", None, "y", None, final=True)
    pair.send()
    assert wire.puts == ["r_0_0", "r_0_1", "r_0_2"]
    assert [message["data"] for message in wire.store.values()] == ["x", "y", None]


@pytest.mark.parametrize("empty", [[], {}, "", 0, False, b""], ids=repr)
def test_ch4_an_empty_object_is_not_none(empty: object, wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, build=lambda _payload: empty)
    pair.save("r", "x", "y", final=True)
    pair.send()
    assert list(wire.store.values()) == [{"data": empty, "finished": False}, {"data": empty, "finished": True}]


def test_ch4_what_a_builder_makes_of_a_final_is_sent_even_if_it_is_none(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, build=lambda payload: payload if payload == "keep" else None)
    pair.save("r", "drop", "keep", "drop", final=True)
    pair.send()
    assert list(wire.store.values()) == [{"data": "keep", "finished": False}, {"data": None, "finished": True}]


def test_ch4_a_chunk_is_built_once_however_often_it_is_put(wire: Wire, make_pair: MakePair, builder: Builder) -> None:
    pair = make_pair(wire, build=builder)
    left = [3]

    def fail(_key: ChunkKey, _message: Message) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise ConnectionError("down")

    wire.on_put = fail
    pair.save("r", "x", final=True)
    pair.settle(1)
    assert builder.built == ["x"]
    assert wire.attempts == ["r_0_0"] * 4


def test_ch5_the_message_is_exact_and_handed_out_unchanged(wire: Wire, pair: Pair) -> None:
    pair.rcv.load_async("r")
    pair.save("r", {"k": [1]}, final=True)
    pair.send()
    put = wire.store["r_0_0"]
    assert put == {"data": {"k": [1]}, "finished": True}
    pair.receive()
    assert pair.poll()["r"][0] is put


def test_ch7_after_the_final_the_id_starts_again_at_zero(wire: Wire, pair: Pair) -> None:
    for round_ in range(3):
        pair.rcv.load_async("r")
        pair.save("r", f"x{round_}", f"y{round_}", final=True)
        pair.settle(0.5)
    assert wire.puts == ["r_0_0", "r_0_1"] * 3
    assert pair.data("r") == ["x0", "y0", "x1", "y1", "x2", "y2"]
    pair.assert_quiescent()


def test_ch7_the_id_can_be_used_again_while_its_final_is_still_being_put(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate]
) -> None:
    gate = make_gate()
    wire.on_put = lambda _key, message: gate() if message["data"] == "end" else None
    snd = make_adapter(wire, 0)
    snd.save_async("r", "x", False)
    snd.save_async("r", "end", True)
    gate.wait_for_visitor()
    snd.save_async("r", "next", False)
    snd.save_async("r", "next end", True)
    gate.open()
    snd.assert_quiescent()
    assert wire.puts == ["r_0_0", "r_0_1", "r_0_0", "r_0_1"]


def test_ch7_a_new_use_waits_for_the_retries_of_the_one_before(wire: Wire, pair: Pair) -> None:
    """A put that fails holds up its request, so the next use of the id never overtakes the end of the last."""
    failures = iter([True, True])

    def fail(_key: ChunkKey, message: Message) -> None:
        if message["data"] == "end" and next(failures, False):
            raise ConnectionError("down")

    wire.on_put = fail
    pair.save("r", "x", "end", final=True)
    pair.save("r", "next", final=True)
    pair.save("other", "o")
    pair.send()
    assert wire.puts == ["r_0_0", "other_0_0"]
    pair.settle(1)
    assert wire.puts == ["r_0_0", "other_0_0", "r_0_1", "r_0_0"]


def test_ch7_the_cancel_mark_is_gone_after_the_final(wire: Wire, pair: Pair) -> None:
    pair.save("r", "x", "end", final=True)
    pair.snd.cancel_sender("r")
    pair.send()
    pair.save("r", "x", "end", final=True)
    pair.send()
    assert wire.puts == ["r_0_0", "r_0_0", "r_0_1"]
    assert wire.store["r_0_1"] == {"data": "end", "finished": True}
