from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from stagewire import ChunkKey, Permanent, TransportFull

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Builder, Collector, Gate, KeepingWire, Message, Pair, Wire

    from stagewire_chunks import ChunkAdapter

Make = Callable[..., "ChunkAdapter"]
Collect = Callable[["ChunkAdapter"], "Collector"]
MakePair = Callable[..., "Pair"]

END = {"data": None, "finished": True}
CANCEL = {"data": None, "finished": True, "cancelled": True}


def test_ch6_what_waits_is_dropped_and_the_final_goes_out_empty(wire: Wire, pair: Pair) -> None:
    pair.rcv.load_async("r")
    pair.save("r", "p0", "p1", "end", final=True)
    pair.snd.cancel_sender("r")
    pair.settle()
    assert pair.received["r"] == [END]
    assert wire.puts == ["r_0_0"]
    pair.assert_quiescent()


@pytest.mark.parametrize("final_first", [True, False], ids=["final-then-cancel", "cancel-then-final"])
@pytest.mark.parametrize("sent", range(4))
def test_ch6_wherever_the_cancel_falls_ids_are_contiguous_and_the_final_comes_once(
    sent: int, wire: Wire, pair: Pair, *, final_first: bool
) -> None:
    chunks = ["p0", "p1", "p2"]
    pair.rcv.load_async("r")
    pair.save("r", *chunks[:sent])
    pair.send()
    pair.save("r", *chunks[sent:])
    if final_first:
        pair.snd.save_async("r", "end", True)
        pair.snd.cancel_sender("r")
    else:
        pair.snd.cancel_sender("r")
        pair.snd.save_async("r", "end", True)
    pair.settle()
    assert pair.received["r"] == [{"data": chunk, "finished": False} for chunk in chunks[:sent]] + [END]
    assert wire.puts == [f"r_0_{number}" for number in range(sent + 1)]
    pair.assert_quiescent()


def test_ch6_cancel_while_a_put_is_blocked(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], collect: Collect
) -> None:
    gate = make_gate()
    wire.on_put = lambda _key, message: gate() if message["data"] == "p0" else None
    snd, rcv = make_adapter(wire, 0), make_adapter(wire, 1, 0)
    rcv.load_async("r")
    snd.save_async("r", "p0", False)
    gate.wait_for_visitor()
    snd.save_async("r", "p1", False)
    snd.cancel_sender("r")
    snd.save_async("r", "end", True)
    gate.open()
    assert collect(rcv).until_final("r") == [{"data": "p0", "finished": False}, END]
    assert wire.puts == ["r_0_0", "r_0_1"]
    snd.assert_quiescent()


def test_ch6_cancel_while_the_final_itself_is_being_put_changes_nothing(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], collect: Collect
) -> None:
    gate = make_gate()
    wire.on_put = gate
    snd, rcv = make_adapter(wire, 0), make_adapter(wire, 1, 0)
    rcv.load_async("r")
    snd.save_async("r", "end", True)
    gate.wait_for_visitor()
    snd.cancel_sender("r")
    gate.open()
    assert collect(rcv).until_final("r") == [{"data": "end", "finished": True}]
    snd.assert_quiescent()


def test_ch6_cancel_between_dequeue_and_put(wire: Wire, pair: Pair) -> None:
    """All four are in the step's hands when the cancel comes; the first is being put."""
    wire.on_put = lambda key, _message: pair.snd.cancel_sender("r") if key == "r_0_0" else None
    pair.rcv.load_async("r")
    pair.save("r", "p0", "p1", "p2", "end", final=True)
    pair.settle()
    assert pair.received["r"] == [{"data": "p0", "finished": False}, END]
    assert wire.puts == ["r_0_0", "r_0_1"]
    pair.assert_quiescent()


def test_ch6_a_cancelled_final_is_not_built(wire: Wire, make_pair: MakePair, builder: Builder) -> None:
    pair = make_pair(wire, build=builder)
    pair.save("r", "p0", "end", final=True)
    pair.snd.cancel_sender("r")
    pair.send()
    assert not builder.built
    assert wire.store["r_0_0"] == END


def test_ch6_the_other_requests_are_not_touched(pair: Pair) -> None:
    pair.rcv.load_async("a")
    pair.rcv.load_async("b")
    pair.save("a", 1)
    pair.save("b", 1)
    pair.save("a", 2, final=True)
    pair.save("b", 2, final=True)
    pair.snd.cancel_sender("a")
    pair.settle()
    assert pair.received["a"] == [END]
    assert pair.data("b") == [1, 2]


def test_ch6_a_cancel_does_not_wait_for_a_retry(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, backoff=60.0, backoff_max=60.0)

    def refuse_chunks(_key: ChunkKey, message: Message) -> None:
        if not message["finished"]:
            raise ConnectionError("down")

    wire.on_put = refuse_chunks
    pair.save("r", "p0", "end", final=True)
    pair.send()
    assert wire.attempts == ["r_0_0"]
    pair.snd.cancel_sender("r")
    pair.send()  # no time has gone by
    assert wire.puts == ["r_0_0"]
    assert wire.store["r_0_0"] == END
    pair.snd.assert_quiescent()


@pytest.mark.parametrize("error", [Permanent("no"), ConnectionError("down"), TransportFull("full")], ids=str)
def test_ch6_a_put_that_fails_after_its_cancel_is_no_failure(error: Exception, wire: Wire, pair: Pair) -> None:
    """The chunk was being put when the cancel came: its end no longer matters, and nobody waits for a retry."""

    def cancel_and_fail(_key: ChunkKey, message: Message) -> None:
        if message["data"] == "p0":
            pair.snd.cancel_sender("r")
            raise error

    wire.on_put = cancel_and_fail
    pair.save("r", "p0", "end", final=True)
    pair.send()  # no time goes by
    assert wire.messages == [END]
    assert not pair.snd.poll_failed()
    pair.snd.assert_quiescent()


def test_ch6_ch15_the_pause_before_a_cancel_does_not_shorten_the_one_after_it(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, backoff=4.0, backoff_max=4.0)

    def fail(_key: ChunkKey, _message: Message) -> None:
        raise ConnectionError("down")

    wire.on_put = fail
    pair.save("r", "p0", "end", final=True)
    pair.send()  # waits until 4
    pair.clock.advance(3.0)
    pair.snd.cancel_sender("r")
    pair.send()  # the final fails, and waits until 7
    pair.clock.advance(2.0)
    pair.send()
    assert len(wire.attempts) == 2
    pair.clock.advance(2.0)
    pair.send()
    assert len(wire.attempts) == 3


def test_ch6_a_final_that_failed_once_goes_out_empty_after_the_cancel(wire: Wire, pair: Pair) -> None:
    failures = iter([True])

    def fail(_key: ChunkKey, message: Message) -> None:
        if message["finished"] and next(failures, False):
            raise ConnectionError("down")

    wire.on_put = fail
    pair.save("r", "p0", "end", final=True)
    pair.send()
    pair.snd.cancel_sender("r")
    pair.send()
    assert wire.store["r_0_1"] == END


def test_ch6_ch19_a_cancel_makes_room_at_once(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, queue_chunks=4, queue_bytes=1 << 20)
    pair.save("a", *[b"x" * 1000] * 3)
    pair.save("a", b"x" * 1000, final=True)
    assert not pair.snd.wait_for_room("b", 0)
    pair.snd.cancel_sender("a")
    assert pair.snd.wait_for_room("b", 0)
    assert pair.snd.stats()["queued_bytes"] == 0


def test_ch14_a_cancel_of_an_id_that_is_not_in_use_has_no_effect_ever(pair: Pair) -> None:
    pair.rcv.load_async("r")
    for _ in range(2):
        pair.snd.cancel_sender("r")  # never used, then: used and finished
        pair.save("r", "x", "end", final=True)
        pair.settle()
        pair.rcv.load_async("r")
    assert pair.data("r") == ["x", "end", "x", "end"]
    pair.rcv.cleanup_receiver("r")
    pair.assert_quiescent()


@pytest.mark.parametrize("sent", [0, 2])
def test_ch14_ch18_a_cancel_with_no_final_to_come_ends_the_request_and_leaks_nothing(
    sent: int, wire: Wire, pair: Pair
) -> None:
    pair.rcv.load_async("r")
    pair.save("r", *range(sent))
    pair.send()
    pair.save("r", "dropped")
    pair.snd.cancel_sender("r")
    pair.snd.cancel_sender("r")
    pair.settle()
    assert pair.received["r"] == [{"data": n, "finished": False} for n in range(sent)] + [CANCEL]
    assert wire.puts == [f"r_0_{number}" for number in range(sent + 1)]
    pair.assert_quiescent()


def test_ch14_it_never_poisons_a_later_use(pair: Pair) -> None:
    pair.rcv.load_async("r")
    pair.save("r", "old")
    pair.send()
    pair.snd.cancel_sender("r")
    pair.settle()
    pair.rcv.load_async("r")
    pair.save("r", "x", "y", "end", final=True)
    pair.settle()
    assert pair.data("r") == ["old", None, "x", "y", "end"]
    pair.assert_quiescent()


def test_ch14_a_use_that_begins_at_once_replaces_the_terminal_of_the_cancelled_one(wire: Wire, pair: Pair) -> None:
    """Whoever saves the first chunk of a new use has let go of the old one at both ends."""
    pair.rcv.load_async("r")
    pair.save("r", "old")
    pair.send()
    pair.receive()
    pair.snd.cancel_sender("r")
    pair.rcv.cleanup_receiver("r")
    pair.rcv.load_async("r")
    pair.save("r", "x", "end", final=True)
    pair.settle()
    assert pair.data("r") == ["x", "end"]
    assert wire.puts == ["r_0_0", "r_0_0", "r_0_1"]
    pair.assert_quiescent()


def test_ch14_a_late_completion_of_an_old_use_does_not_move_the_ids_of_its_successor(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate]
) -> None:
    gate = make_gate()
    wire.on_put = lambda _key, message: gate() if message["data"] == "old" else None
    snd = make_adapter(wire, 0)
    snd.save_async("r", "old", False)
    gate.wait_for_visitor()
    snd.cancel_sender("r")
    snd.save_async("r", "x", False)
    snd.save_async("r", "end", True)
    gate.open()
    snd.assert_quiescent()
    assert wire.puts == ["r_0_0", "r_0_0", "r_0_1"]
    assert [wire.store[key]["data"] for key in ("r_0_0", "r_0_1")] == ["x", "end"]


def test_ch14_a_late_completion_of_an_old_final_does_not_end_its_successor(wire: Wire, pair: Pair) -> None:
    """While the final of the first use is being put, the second use begins and is cancelled."""

    def begin_anew(_key: ChunkKey, message: Message) -> None:
        if message["data"] == "end":
            pair.save("r", "x", "y", "end 2", final=True)
            pair.snd.cancel_sender("r")

    wire.on_put = begin_anew
    pair.save("r", "end", final=True)
    pair.settle()
    assert wire.messages == [{"data": "end", "finished": True}, END]
    assert wire.puts == ["r_0_0", "r_0_0"]
    pair.snd.assert_quiescent()


def test_ch14_saving_and_cancelling_for_ever_holds_no_memory(pair: Pair) -> None:
    for number in range(5_000):
        pair.save("r", number)
        pair.snd.cancel_sender("r")
    assert pair.snd.stats()["queued"] == 1
    assert len(pair.snd._outbox.backlog._ready) < 10
    pair.settle()
    pair.assert_quiescent()


@pytest.mark.parametrize("arrived", [True, False])
def test_ch18_a_chunk_that_may_have_arrived_cannot_hide_the_terminal(
    keeping_wire: KeepingWire, make_pair: MakePair, *, arrived: bool
) -> None:
    """The put of p1 timed out. Whether p1 is there or not: the cancelled request ends, once."""
    wire = keeping_wire
    wire.delivers_failures = arrived
    pair = make_pair(wire)

    def time_out(_key: ChunkKey, message: Message) -> None:
        if message["data"] == "p1":
            raise TimeoutError("no confirm")

    wire.on_put = time_out
    pair.rcv.load_async("r")
    pair.save("r", "p0", "p1", "end", final=True)
    pair.send()
    pair.snd.cancel_sender("r")
    pair.settle()
    assert pair.data("r") == (["p0", "p1", None] if arrived else ["p0", None])
    assert [message["finished"] for message in pair.received["r"]].count(True) == 1
    pair.assert_quiescent()


@pytest.mark.parametrize(
    "error", [TimeoutError("no confirm"), TransportFull("full"), Permanent("past the end")], ids=str
)
def test_ch18_the_echo_of_a_terminal_is_put_again_like_anything_else(
    error: Exception, keeping_wire: KeepingWire, make_pair: MakePair
) -> None:
    """p1 arrived although its put failed, and so hides the final; the final is put once more, and that fails, too."""
    wire, pair = keeping_wire, make_pair(keeping_wire)
    left = [1]

    def fail(key: ChunkKey, message: Message) -> None:
        wire.delivers_failures = message["data"] == "p1"
        if message["data"] == "p1":
            raise TimeoutError("no confirm")
        if key.chunk == 2 and left[0]:
            left[0] -= 1
            raise error

    wire.on_put = fail
    pair.rcv.load_async("r")
    pair.save("r", "p0", "p1", "end", final=True)
    pair.send()
    pair.snd.cancel_sender("r")
    pair.settle()
    hopeless = isinstance(error, Permanent)  # then the final has ended the run under its own id, as far as one can tell
    assert pair.data("r") == (["p0", "p1"] if hopeless else ["p0", "p1", None])
    assert not pair.snd.poll_failed()
    pair.snd.assert_quiescent()


def test_ch18_back_pressure_leaves_no_doubt_and_so_no_second_terminal(
    keeping_wire: KeepingWire, make_pair: MakePair
) -> None:
    wire, pair = keeping_wire, make_pair(keeping_wire)

    def refuse(_key: ChunkKey, message: Message) -> None:
        if message["data"] == "p1":
            raise TransportFull("no room")

    wire.on_put = refuse
    pair.save("r", "p0", "p1", "end", final=True)
    pair.send()
    pair.snd.cancel_sender("r")
    pair.send()
    assert wire.attempts == ["r_0_0", "r_0_1", "r_0_1"]
