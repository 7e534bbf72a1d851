from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import ChunkKey
from stagewire_chunks import ChunkAdapter

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Collector, Conn, Gate, KeepingWire, Message, Pair, Wire

Make = Callable[..., ChunkAdapter]
Collect = Callable[[ChunkAdapter], "Collector"]
MakePair = Callable[..., "Pair"]
Eventually = Callable[[Callable[[], object]], None]


def chunk(data: object, *, finished: bool = False) -> dict[str, object]:
    return {"data": data, "finished": finished}


def test_ch8_load_is_idempotent(wire: Wire, pair: Pair) -> None:
    pair.save("r", 1, 2, 3, final=True)
    pair.send()
    pair.rcv.load_async("r")
    pair.rcv.step_receive()
    pair.rcv.load_async("r")  # finished meanwhile: waits for a second use
    pair.receive()
    pair.poll()
    assert pair.data("r") == [1, 2, 3]
    pair.rcv.load_async("r")
    assert pair.rcv.stats()["receiving"] == 1


def test_ch8_load_is_idempotent_while_a_get_is_in_flight(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], collect: Collect
) -> None:
    gate = make_gate()
    wire.on_get = lambda key: gate() if key == "r_0_1" else None
    wire.store = {"r_0_0": chunk("x"), "r_0_1": chunk("end", finished=True)}
    rcv = make_adapter(wire, 1, 0)
    rcv.load_async("r")
    gate.wait_for_visitor()
    rcv.load_async("r")
    gate.open()
    assert collect(rcv).until_final("r") == [chunk("x"), chunk("end", finished=True)]
    assert wire.gets.count("r_0_0") == 1


def test_ch8_loading_without_a_source_is_an_error_that_says_so(conn: Conn, make_adapter: Make) -> None:
    with pytest.raises(ValueError, match="stage 'tone' cannot load: give it a src_stage_id"):
        make_adapter(conn, "tone").load_async("r")


def test_ch9_poll_takes_per_request_in_order_and_only_what_is_new(pair: Pair) -> None:
    for request in ("a", "b", "silent"):
        pair.rcv.load_async(request)
    pair.save("a", 1, 2, 3)
    pair.save("b", 1, final=True)
    pair.send()
    pair.receive()
    assert pair.rcv.poll_ready() == {"a": [chunk(1), chunk(2), chunk(3)], "b": [chunk(1, finished=True)]}
    assert pair.rcv.poll_ready() == {}


def test_ch9_polling_threads_share_the_messages_without_loss_or_doubling(wire: Wire, make_adapter: Make) -> None:
    snd, rcv = make_adapter(wire, 0), make_adapter(wire, 1, 0)
    taken: list[int] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            for messages in rcv.poll_ready().values():
                taken.extend(message["data"] for message in messages)
                if messages[-1]["finished"]:
                    done.set()

    threads = [threading.Thread(target=poll) for _ in range(3)]
    rcv.load_async("r")
    for thread in threads:
        thread.start()
    for number in range(2_000):
        snd.save_async("r", number, number == 1_999)
    for thread in threads:
        thread.join(20)
    assert sorted(taken) == list(range(2_000))


def test_ch10_cleanup_is_a_commit_barrier(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], collect: Collect, eventually: Eventually
) -> None:
    """A get is in flight while its request is cleaned up and registered again: what it brings is dropped."""
    gate, in_flight = make_gate(), {"r_0_0": chunk("old")}

    def get(_key: ChunkKey) -> None:
        if not gate.entered.is_set():
            gate()
            wire.store.update(in_flight)

    wire.on_get = get
    rcv = make_adapter(wire, 1, 0)
    rcv.load_async("r")
    gate.wait_for_visitor()
    rcv.cleanup_receiver("r")
    assert rcv.poll_ready() == {}
    rcv.load_async("r")
    gate.open()
    eventually(lambda: rcv.stats()["stale"])
    assert rcv.poll_ready() == {}
    wire.store["r_0_0"] = chunk("new", finished=True)
    assert collect(rcv).until_final("r") == [chunk("new", finished=True)]
    assert rcv.stats()["stale"] == 1


def test_ch10_cleanup_removes_what_was_ready(pair: Pair) -> None:
    pair.rcv.load_async("r")
    pair.save("r", 1, 2)
    pair.send()
    pair.receive()
    pair.rcv.cleanup_receiver("r")
    assert pair.rcv.poll_ready() == {}
    pair.receive()
    assert pair.rcv.poll_ready() == {}
    pair.rcv.cleanup_receiver("r")
    pair.rcv.assert_quiescent()


def test_ch10_the_token_is_the_registration_not_the_id(wire: Wire, pair: Pair) -> None:
    """Cleaned up and registered again from inside the get: the same id, another token."""

    def swap(_key: ChunkKey) -> None:
        wire.on_get = lambda _key: None
        pair.rcv.cleanup_receiver("r")
        pair.rcv.load_async("r")

    pair.rcv.load_async("r")
    pair.save("r", "old")
    pair.send()
    wire.on_get = swap
    pair.rcv.step_receive()
    assert pair.rcv.poll_ready() == {}
    wire.store["r_0_0"] = chunk("new")
    pair.receive()
    assert pair.rcv.poll_ready() == {"r": [chunk("new")]}


def test_ch10_a_chunk_is_committed_before_the_next_get(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], collect: Collect
) -> None:
    gate = make_gate()
    wire.on_get = lambda key: gate() if key == "r_0_1" else None
    wire.store = {"r_0_0": chunk("x")}
    rcv = make_adapter(wire, 1, 0)
    rcv.load_async("r")
    gate.wait_for_visitor()
    assert rcv.poll_ready() == {"r": [chunk("x")]}


def test_ch10_a_get_in_flight_is_given_a_moment_so_that_it_takes_nothing_from_the_next_registration(
    wire: Wire, make_adapter: Make, eventually: Eventually
) -> None:
    rcv = make_adapter(wire, 1, 0)
    order: list[str] = []

    def clean() -> None:
        rcv.cleanup_receiver("r")
        order.append("cleaned")

    cleaner = threading.Thread(target=clean)

    def get(_key: ChunkKey) -> None:
        wire.on_get = lambda _key: None
        cleaner.start()
        eventually(lambda: rcv._inbox._awaiting)
        order.append("got")

    wire.on_get = get
    rcv.load_async("r")
    eventually(lambda: order[-1:] == ["cleaned"])
    cleaner.join()
    assert order == ["got", "cleaned"]


def test_ch10_cleanup_of_a_running_request_drops_what_the_transport_holds(
    keeping_wire: KeepingWire, make_pair: MakePair
) -> None:
    pair = make_pair(keeping_wire)
    pair.rcv.load_async("r")
    pair.save("r", 1, 2)
    pair.send()
    pair.rcv.cleanup_receiver("r")
    assert keeping_wire.cleaned == ["r"]
    assert not keeping_wire.store


def test_ch7_ch10_cleanup_of_a_finished_request_leaves_the_chunks_of_its_next_use_alone(
    keeping_wire: KeepingWire, make_pair: MakePair
) -> None:
    pair = make_pair(keeping_wire)
    pair.rcv.load_async("r")
    pair.save("r", 1, final=True)
    pair.send()
    pair.receive()
    keeping_wire._ended.clear()
    keeping_wire._seen.clear()
    pair.save("r", "next", final=True)
    pair.send()
    pair.rcv.cleanup_receiver("r")
    pair.rcv.load_async("r")
    pair.settle()
    assert not keeping_wire.cleaned
    assert pair.data("r") == ["next"]


def test_ch10_a_cleanup_that_raises_is_reported_and_does_no_harm(
    keeping_wire: KeepingWire, make_pair: MakePair, recorder: Any
) -> None:
    def fail(_request: str) -> None:
        raise OSError("gone")

    keeping_wire.cleanup = fail  # type: ignore[method-assign, assignment]
    pair = make_pair(keeping_wire, log=recorder)
    pair.rcv.load_async("r")
    pair.rcv.cleanup_receiver("r")
    pair.assert_quiescent()
    (event,) = recorder.named("chunk.cleanup_failed")
    assert (event["request_id"], event["cause"]) == ("r", "OSError: gone")


def test_ch11_pauses_double_from_1_to_10_ms_while_all_are_silent(pair: Pair) -> None:
    pair.rcv.load_async("a")
    pair.rcv.load_async("b")
    assert [pair.rcv.step_receive() for _ in range(6)] == [0.001, 0.002, 0.004, 0.008, 0.01, 0.01]
    pair.save("a", 1)
    pair.send()
    assert pair.rcv.step_receive() == 0.0
    assert pair.rcv.step_receive() == 0.001


def test_ch11_a_new_registration_is_looked_at_with_fresh_impatience(pair: Pair) -> None:
    pair.rcv.load_async("a")
    for _ in range(5):
        pair.rcv.step_receive()
    pair.rcv.load_async("b")
    assert pair.rcv.step_receive() == 0.001


def test_ch11_nobody_registered_means_a_short_sleep(pair: Pair) -> None:
    assert pair.rcv.step_receive() == 0.1
    pair.rcv.load_async("r")
    pair.rcv.cleanup_receiver("r")
    assert pair.rcv.step_receive() == 0.1


def test_ch11_a_round_visits_everybody_and_finished_requests_leave_it(wire: Wire, pair: Pair) -> None:
    for request in ("a", "b", "c"):
        pair.rcv.load_async(request)
    pair.rcv.step_receive()
    assert wire.gets == ["a_0_0", "b_0_0", "c_0_0"]
    pair.save("b", 1, final=True)
    pair.send()
    pair.rcv.step_receive()
    wire.gets.clear()
    pair.rcv.step_receive()
    assert wire.gets == ["a_0_0", "c_0_0"]


def test_ch11_a_busy_request_leaves_the_others_their_turn(wire: Wire, pair: Pair) -> None:
    pair.rcv.load_async("busy")
    pair.rcv.load_async("other")
    pair.save("busy", *range(1_000))
    pair.save("other", 1)
    pair.send()
    pair.rcv.step_receive()
    assert pair.poll()["other"] == [chunk(1)]
    assert len(pair.received["busy"]) < 1_000


class Waits:
    """A waiter that notes the pauses, and waits for as long as it is told to, or until woken."""

    def __init__(self, real: float) -> None:
        self.real = real
        self.pauses: list[float] = []

    def __call__(self, condition: threading.Condition, pause: float) -> bool:
        self.pauses.append(pause)
        return condition.wait(self.real)


class HintingWire:
    """A double that gives hints, as `set_wakeup` of a transport does."""

    def __init__(self) -> None:
        self.store: dict[str, Message] = {}
        self.hint: Callable[[], None] = lambda: None

    def put(self, key: str, message: Message) -> None:
        self.store[key] = message
        self.hint()

    def get(self, key: str) -> Message | None:
        return self.store.pop(key, None)

    def set_wakeup(self, hint: Callable[[], None]) -> None:
        self.hint = hint


def test_ch11_a_wake_up_from_the_transport_ends_the_pause(
    make_adapter: Make, collect: Collect, eventually: Eventually
) -> None:
    wire, waits = HintingWire(), Waits(real=3_600)
    rcv = make_adapter(wire, 1, 0, waiter=waits)
    rcv.load_async("r")
    eventually(lambda: rcv._inbox._sleeping)
    wire.put("r_0_0", chunk("x", finished=True))  # without the hint it would sleep for an hour
    assert collect(rcv).until_final("r") == [chunk("x", finished=True)]


def test_ch11_a_hint_in_the_middle_of_a_round_is_not_lost(
    make_adapter: Make, collect: Collect, eventually: Eventually
) -> None:
    class LateWire(HintingWire):
        def get(self, key: str) -> Message | None:
            found = super().get(key)
            if found is None and "x" not in key:
                self.put("x_0_0", chunk("x", finished=True))  # just after its turn in this round
            return found

    wire, waits = LateWire(), Waits(real=3_600)
    rcv = make_adapter(wire, 1, 0, waiter=waits)
    rcv.load_async("x")
    eventually(lambda: rcv._inbox._sleeping)
    rcv.load_async("y")
    assert collect(rcv).until_final("x") == [chunk("x", finished=True)]


def test_ch11_without_hints_the_timed_poll_is_enough(
    wire: Wire, make_adapter: Make, collect: Collect, eventually: Eventually
) -> None:
    waits = Waits(real=0.0001)
    rcv = make_adapter(wire, 1, 0, waiter=waits)
    rcv.load_async("r")
    eventually(lambda: len(waits.pauses) >= 8)
    assert waits.pauses[:8] == [0.001, 0.002, 0.004, 0.008, 0.01, 0.01, 0.01, 0.01]
    wire.store["r_0_0"] = chunk("x", finished=True)
    assert collect(rcv).until_final("r") == [chunk("x", finished=True)]


def test_ch11_loading_wakes_the_sleeping_thread(
    wire: Wire, make_adapter: Make, collect: Collect, eventually: Eventually
) -> None:
    rcv = make_adapter(wire, 1, 0, waiter=Waits(real=3_600))
    wire.store = {"a_0_0": chunk(1, finished=True), "b_0_0": chunk(2, finished=True)}
    rcv.load_async("a")
    eventually(lambda: rcv._inbox._sleeping)
    rcv.load_async("b")
    collected = collect(rcv)
    collected.until_final("a")
    collected.until_final("b")


def test_on_ready_is_called_once_for_each_poll_that_it_is_worth(wire: Wire, make_pair: MakePair) -> None:
    calls: list[int] = []
    pair = make_pair(wire, on_ready=lambda: calls.append(1))
    pair.rcv.load_async("r")
    pair.save("r", 1, 2, 3)
    pair.send()
    pair.receive()
    assert len(calls) == 1
    pair.poll()
    pair.save("r", 4)
    pair.send()
    pair.receive()
    assert len(calls) == 2


def test_on_ready_that_raises_is_reported_and_does_no_harm(wire: Wire, make_pair: MakePair, recorder: Any) -> None:
    def raises() -> None:
        raise RuntimeError("not mine")

    pair = make_pair(wire, on_ready=raises, log=recorder)
    pair.rcv.load_async("r")
    pair.save("r", 1, final=True)
    pair.settle()
    assert pair.data("r") == [1]
    (event,) = recorder.named("chunk.callback_failed")
    assert event["cause"] == "RuntimeError: not mine"
    assert "raises" in event["callback"]


def test_the_window_closes_when_nobody_reads_and_opens_with_the_next_poll(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, window_chunks=100)
    pair.rcv.load_async("r")
    pair.rcv.load_async("other")
    pair.save("r", *range(1_000))
    pair.send()
    pair.receive()
    held = pair.rcv.stats()["unread"]
    assert 100 <= held < 200
    pair.save("other", 1)
    pair.send()
    pair.receive()
    assert pair.rcv.poll_ready(leave={"r"}) == {"other": [chunk(1)]}
    pair.receive()
    assert pair.rcv.stats()["unread"] == held
    for _ in range(20):
        pair.poll()
        pair.receive()
    assert pair.data("r") == list(range(1_000))


def test_the_window_counts_bytes_as_well(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, window_bytes=10_000)
    pair.rcv.load_async("r")
    pair.save("r", *[b"x" * 6_000] * 5)
    pair.send()
    pair.receive()
    assert 2 <= pair.rcv.stats()["unread"] < 5
    held = pair.rcv.stats()["unread"]
    pair.rcv.poll_ready(leave={"r"})
    pair.receive()
    assert pair.rcv.stats()["unread"] == held
    for _ in range(5):
        pair.poll()
        pair.receive()
    assert len(pair.data("r")) == 5
