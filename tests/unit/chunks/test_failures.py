from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import ChunkExpired, ChunkKey, Closed, CodecError, Permanent, RequestFailed, Retryable, TransportFull

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import KeepingWire, Message, Pair, Wire

MakePair = Callable[..., "Pair"]
OnPut = Callable[[ChunkKey, "Message"], None]


def failing(error: Exception, times: float = math.inf, *, request: str = "bad", final: bool | None = None) -> OnPut:
    """A put hook that fails for one request, so many times; ``final`` limits it to finals, or to what is none."""
    left = [times]

    def fail(key: ChunkKey, message: Message) -> None:
        if key.request == request and left[0] > 0 and final in (None, message["finished"]):
            left[0] -= 1
            raise error

    return fail


def errors(messages: list[Message]) -> list[str]:
    return [message["error"] for message in messages if "error" in message]


@pytest.mark.parametrize(
    "error", [ConnectionError("down"), Retryable("later"), OSError("?")], ids=lambda e: type(e).__name__
)
def test_ch15_a_put_that_fails_is_retried_in_its_place_while_others_go_on(
    error: Exception, wire: Wire, pair: Pair
) -> None:
    wire.on_put = failing(error, 3)
    for request in ("bad", "good"):
        pair.rcv.load_async(request)
    pair.save("bad", 1)
    pair.save("good", 1)
    pair.save("bad", 2, final=True)
    pair.save("good", 2, final=True)
    pair.send()
    assert wire.puts == ["good_0_0", "good_0_1"]
    pair.settle()
    assert wire.puts == ["good_0_0", "good_0_1", "bad_0_0", "bad_0_1"]
    assert (pair.data("bad"), pair.data("good")) == ([1, 2], [1, 2])
    assert not pair.snd.poll_failed()
    assert pair.snd.stats()["retries"] == 3
    pair.assert_quiescent()


def test_ch15_the_back_off_doubles_up_to_its_bound(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, backoff=1.0, backoff_max=5.0, attempts=6)
    wire.on_put = failing(ConnectionError("down"), 5)
    times: list[float] = []
    pair.save("bad", 1)
    for _ in range(80):
        before = len(wire.attempts)
        pair.send()
        if len(wire.attempts) > before:
            times.append(pair.clock.now - 1_000)
        pair.clock.advance(0.25)
    assert times == [0, 1, 3, 7, 12, 17]


def test_ch15_the_step_says_when_the_next_attempt_is_due(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, backoff=0.04)
    wire.on_put = failing(ConnectionError("down"))
    pair.save("bad", 1)
    pair.send()
    assert pair.snd.step_save() == pytest.approx(0.04)
    pair.clock.advance(0.03)
    assert pair.snd.step_save() == pytest.approx(0.01)


def test_ch15_ch18_when_the_budget_is_spent_the_request_fails_and_both_ends_hear_of_it(
    wire: Wire, make_pair: MakePair, recorder: Any
) -> None:
    pair = make_pair(wire, attempts=4, log=recorder)
    wire.on_put = failing(ConnectionError("down"), 4)
    pair.rcv.load_async("bad")
    pair.save("bad", 1, 2, 3, final=True)
    pair.settle()
    assert wire.attempts == ["bad_0_0"] * 5
    (terminal,) = pair.received["bad"]
    assert (terminal["data"], terminal["finished"]) == (None, True)
    assert "request 'bad' failed in stage 0" in terminal["error"]
    assert "ConnectionError: down" in terminal["error"]
    failures = pair.snd.poll_failed()
    assert isinstance(failures["bad"], RequestFailed)
    assert isinstance(failures["bad"].__cause__, ConnectionError)
    assert failures["bad"].__cause__.__traceback__ is None
    assert not pair.snd.poll_failed()
    (event,) = recorder.named("chunk.request_failed")
    assert (event["request_id"], event["chunk_id"], event["attempts"]) == ("bad", 0, 4)
    pair.assert_quiescent()


@pytest.mark.parametrize(
    "error", [Permanent("no such queue"), CodecError("cannot be encoded"), Closed("the face was closed")], ids=str
)
def test_ch15_what_cannot_succeed_is_not_tried_again(error: Exception, wire: Wire, pair: Pair) -> None:
    wire.on_put = failing(error, 1)
    pair.rcv.load_async("bad")
    pair.save("bad", 1, 2)
    pair.send()
    pair.receive()
    pair.poll()
    assert wire.attempts == ["bad_0_0", "bad_0_0"]
    assert len(errors(pair.received["bad"])) == 1


def test_ch15_the_terminal_takes_the_id_of_the_chunk_that_was_not_put(wire: Wire, pair: Pair) -> None:
    def fail(key: ChunkKey, message: Message) -> None:
        if message["data"] == "poison":
            raise Permanent("no")

    wire.on_put = fail
    pair.rcv.load_async("bad")
    pair.save("bad", 1, 2, "poison", 4, final=True)
    pair.settle()
    assert wire.puts == ["bad_0_0", "bad_0_1", "bad_0_2"]
    assert pair.data("bad") == [1, 2, None]


def test_ch15_ch18_nothing_of_a_failed_request_is_put_after_its_terminal(wire: Wire, pair: Pair) -> None:
    wire.on_put = failing(Permanent("no"), 1)
    pair.save("bad", *range(300), final=True)
    pair.settle()
    assert wire.puts == ["bad_0_0"]
    assert "error" in wire.messages[0]
    pair.snd.assert_quiescent()


def test_ch15_back_pressure_is_no_failure(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, attempts=2, room_timeout=60.0)
    wire.on_put = failing(TransportFull("no room"), 40)
    pair.rcv.load_async("bad")
    pair.save("bad", 1, final=True)
    pair.settle(20.0)
    assert pair.data("bad") == [1]
    assert not pair.snd.poll_failed()
    assert pair.snd.stats()["full"] == 40


def test_ch15_back_pressure_without_end_is_one(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, room_timeout=5.0)
    wire.on_put = failing(TransportFull("no room"), final=False)
    pair.rcv.load_async("bad")
    pair.save("bad", 1, 2, final=True)
    pair.settle(4.0)
    assert not pair.received
    pair.settle(4.0)
    assert "TransportFull: no room" in errors(pair.received["bad"])[0]
    pair.assert_quiescent()


def test_ch15_progress_renews_the_budget(wire: Wire, make_pair: MakePair) -> None:
    """Every chunk fails twice, and three attempts are allowed: none is ever given up."""
    pair = make_pair(wire, attempts=3)
    seen: dict[str, int] = {}

    def fail_twice(key: ChunkKey, _message: Message) -> None:
        seen[key] = seen.get(key, 0) + 1
        if seen[key] < 3:
            raise ConnectionError("down")

    wire.on_put = fail_twice
    pair.rcv.load_async("r")
    pair.save("r", *range(10), final=True)
    pair.settle()
    assert pair.data("r") == list(range(10))


def test_ch15_a_builder_that_raises_fails_its_request_only(wire: Wire, make_pair: MakePair) -> None:
    def build(payload: Any) -> Any:
        if payload == "poison":
            raise TransportFull("even this")  # a builder's error is never taken for the transport's
        return payload

    pair = make_pair(wire, build=build)
    for request in ("bad", "good"):
        pair.rcv.load_async(request)
        pair.save(request, 1)
    pair.save("bad", "poison")
    pair.save("good", 2, final=True)
    pair.save("bad", 3, final=True)
    pair.settle()
    assert pair.data("good") == [1, 2]
    assert pair.data("bad") == [1, None]
    assert "chunk 1: build_payload failed: TransportFull: even this" in errors(pair.received["bad"])[0]
    assert list(pair.snd.poll_failed()) == ["bad"]
    pair.assert_quiescent()


def test_ch15_ch18_what_the_producer_still_saves_for_a_failed_request_is_absorbed(wire: Wire, pair: Pair) -> None:
    wire.on_put = failing(Permanent("no"), 1)
    pair.rcv.load_async("bad")
    pair.save("bad", 1)
    pair.settle()
    pair.save("bad", 2, 3, "end", final=True)  # it has not heard of the failure
    pair.settle()
    assert pair.data("bad") == [None]
    assert wire.puts == ["bad_0_0"]
    pair.rcv.load_async("bad")
    pair.save("bad", "next", final=True)
    pair.settle()
    assert pair.data("bad") == [None, "next"]
    pair.assert_quiescent()


@pytest.mark.parametrize("how", ["poll_failed", "cancel"])
def test_ch15_a_producer_that_has_heard_of_the_failure_may_begin_anew(how: str, wire: Wire, pair: Pair) -> None:
    wire.on_put = failing(Permanent("no"), 1)
    pair.rcv.load_async("bad")
    pair.save("bad", 1)
    pair.settle()
    if how == "poll_failed":
        assert list(pair.snd.poll_failed()) == ["bad"]
    else:
        pair.snd.cancel_sender("bad")
    pair.rcv.load_async("bad")
    pair.save("bad", "next", final=True)
    pair.settle()
    assert pair.data("bad") == [None, "next"]
    pair.assert_quiescent()


def test_ch15_the_reports_of_an_owner_who_never_asks_are_bounded(wire: Wire, pair: Pair) -> None:
    wire.on_put = lambda _key, message: (_ for _ in ()).throw(Permanent("no")) if not message["finished"] else None
    for number in range(5_000):
        pair.save(f"r{number}", 1)
        pair.send()
    assert pair.snd.stats()["failures"] == 4_096
    assert "r4999" in pair.snd.poll_failed()


def test_ch15_a_failed_final_is_followed_by_an_error_terminal(wire: Wire, pair: Pair) -> None:
    wire.on_put = failing(Permanent("too large"), 1, final=True)
    pair.rcv.load_async("bad")
    pair.save("bad", 1, "end", final=True)
    pair.settle()
    assert pair.data("bad") == [1, None]
    assert "too large" in errors(pair.received["bad"])[0]
    pair.assert_quiescent()


def test_ch15_ch16_a_failed_final_never_leaves_the_receiver_waiting_for_ever(
    wire: Wire, make_pair: MakePair, recorder: Any
) -> None:
    """Not even the ERROR can be put: the sender's state is freed, and the stall deadline ends the other side."""
    pair = make_pair(wire, attempts=2, stall_timeout=30.0, log=recorder)
    wire.on_put = failing(ConnectionError("down"), final=True)
    pair.rcv.load_async("bad")
    pair.save("bad", 1, "end", final=True)
    pair.settle(20.0)
    pair.snd.assert_quiescent()
    assert list(pair.snd.poll_failed()) == ["bad"]
    assert len(recorder.named("chunk.terminal_lost")) == 1
    pair.settle(20.0)
    assert pair.data("bad") == [1, None]
    assert len(errors(pair.received["bad"])) == 1
    pair.assert_quiescent()


@pytest.mark.parametrize("arrived", [True, False])
def test_ch15_ch18_a_chunk_that_may_have_arrived_cannot_hide_the_error(
    keeping_wire: KeepingWire, make_pair: MakePair, *, arrived: bool
) -> None:
    wire = keeping_wire
    wire.delivers_failures = arrived
    pair = make_pair(wire, attempts=2)

    def time_out(_key: ChunkKey, message: Message) -> None:
        if message["data"] == "p1":
            raise TimeoutError("no confirm")

    wire.on_put = time_out
    pair.rcv.load_async("r")
    pair.save("r", "p0", "p1", "end", final=True)
    pair.settle()
    assert pair.data("r") == (["p0", "p1", None] if arrived else ["p0", None])
    assert len(errors(pair.received["r"])) == 1
    pair.assert_quiescent()


def test_ch15_gets_that_raise_are_retried_while_others_go_on(wire: Wire, make_pair: MakePair, recorder: Any) -> None:
    left = [5]

    def fail(key: ChunkKey) -> None:
        if key.request == "bad" and left[0]:
            left[0] -= 1
            raise ConnectionError("down")

    wire.on_get = fail
    pair = make_pair(wire, log=recorder)
    for request in ("bad", "good"):
        pair.rcv.load_async(request)
        pair.save(request, 1, final=True)
    pair.send()
    pair.receive()
    pair.poll()
    assert list(pair.received) == ["good"]
    gets = len(wire.gets)
    pair.receive()
    assert len(wire.gets) == gets  # it waits for its back-off
    pair.settle()
    assert pair.data("bad") == [1]
    assert len(recorder.named("chunk.get_failed")) == 1
    pair.assert_quiescent()


@pytest.mark.parametrize("error", [Permanent("no such edge"), ChunkExpired("gone"), CodecError("garbage")], ids=str)
def test_ch15_a_get_that_cannot_succeed_ends_the_request(error: Exception, wire: Wire, pair: Pair) -> None:
    def fail(key: ChunkKey) -> None:
        if key.chunk == 1:
            raise error

    wire.on_get = fail
    pair.rcv.load_async("r")
    pair.save("r", 1, 2)
    pair.settle()
    assert pair.data("r") == [1, None]
    assert str(error) in errors(pair.received["r"])[0]
    pair.rcv.assert_quiescent()


@pytest.mark.parametrize("garbage", [7, "text", [], {"data": 1}, {"finished": True}], ids=repr)
def test_ch15_garbage_from_a_transport_ends_the_request(garbage: Any, wire: Wire, pair: Pair) -> None:
    wire.store["r_0_0"] = garbage
    pair.rcv.load_async("r")
    pair.rcv.load_async("good")
    pair.save("good", 1, final=True)
    pair.settle()
    assert "no chunk message" in errors(pair.received["r"])[0]
    assert pair.data("good") == [1]


def test_ch16_silence_beyond_the_deadline_is_one_error_that_names_edge_and_wait(
    wire: Wire, make_pair: MakePair, recorder: Any
) -> None:
    pair = make_pair(wire, stall_timeout=10.0, edge="text->tone", log=recorder)
    pair.rcv.load_async("r")
    pair.settle(30.0)
    (terminal,) = pair.received["r"]
    assert "edge text->tone" in terminal["error"]
    assert "no chunk 0 for 10" in terminal["error"]
    (event,) = recorder.named("chunk.stalled")
    assert (event["request_id"], event["edge"], event["chunk_id"]) == ("r", "text->tone", 0)
    pair.rcv.assert_quiescent()


def test_ch16_each_chunk_resets_the_deadline(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, stall_timeout=10.0)
    pair.rcv.load_async("r")
    for number in range(5):
        pair.settle(8.0)
        pair.save("r", number)
    pair.settle(8.0)
    assert pair.data("r") == [0, 1, 2, 3, 4]
    pair.settle(8.0)
    assert "no chunk 5" in errors(pair.received["r"])[0]


def test_ch16_every_registration_may_have_its_own_deadline(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, stall_timeout=10.0)
    pair.rcv.load_async("default")
    pair.rcv.load_async("patient", stall_timeout=100.0)
    pair.rcv.load_async("never", stall_timeout=math.inf)
    pair.settle(50.0)
    assert list(pair.received) == ["default"]
    pair.settle(100.0)
    assert list(pair.received) == ["default", "patient"]
    assert pair.rcv.stats()["receiving"] == 1


def test_ch16_without_a_deadline_silence_is_fine(pair: Pair) -> None:
    pair.rcv.load_async("r")
    pair.settle(1_000.0)
    assert not pair.received


def test_ch16_a_get_that_keeps_failing_is_named_in_the_stall(wire: Wire, make_pair: MakePair) -> None:
    def fail(_key: ChunkKey) -> None:
        raise ConnectionError("broker away")

    wire.on_get = fail
    pair = make_pair(wire, stall_timeout=5.0)
    pair.rcv.load_async("r")
    pair.settle(10.0)
    assert "ConnectionError: broker away" in errors(pair.received["r"])[0]


def test_ch16_a_reader_who_does_not_read_is_no_stall(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, stall_timeout=5.0, window_chunks=10)
    pair.rcv.load_async("r")
    pair.save("r", *range(10))
    for _ in range(200):
        pair.send()
        pair.receive()
        pair.clock.advance(0.1)
    pair.poll()
    pair.receive()
    pair.clock.advance(4.0)
    pair.receive()
    pair.save("r", "in time", final=True)
    pair.settle()
    assert pair.data("r") == [*range(10), "in time"]


def test_ch16_ch18_what_comes_after_the_stall_is_dropped(keeping_wire: KeepingWire, make_pair: MakePair) -> None:
    pair = make_pair(keeping_wire, stall_timeout=5.0)
    pair.rcv.load_async("r")
    pair.settle(10.0)
    assert keeping_wire.cleaned == ["r"]
    pair.save("r", 1, 2, final=True)
    pair.settle()
    assert pair.data("r") == [None]
    assert len(pair.received["r"]) == 1
