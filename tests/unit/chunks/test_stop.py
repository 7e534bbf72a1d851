from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import ChunkKey, Closed
from stagewire_chunks import ChunkAdapter, StopReport

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Conn, Gate, Message, Pair, Wire

Make = Callable[..., ChunkAdapter]
MakePair = Callable[..., "Pair"]
Eventually = Callable[[Callable[[], object]], None]


class LongSleep:
    """A waiter that would sleep for an hour unless it is woken, and tells just before it begins to."""

    def __init__(self) -> None:
        self.about_to_sleep = threading.Event()

    def __call__(self, condition: threading.Condition, _pause: float) -> bool:
        self.about_to_sleep.set()
        return condition.wait(3_600)


@pytest.mark.parametrize("side", ["save", "recv"])
def test_ch12_stop_wakes_a_thread_that_sleeps(side: str, conn: Conn, make_adapter: Make) -> None:
    """The stop falls when the thread is about to sleep or sleeps already; either way it ends at once."""
    sleep = LongSleep()
    adapter = make_adapter(conn, 0, 0, waiter=sleep)
    if side == "save":
        adapter.save_async("r", 1, True)
    else:
        adapter.load_async("r")
    assert sleep.about_to_sleep.wait(20)
    assert adapter.stop(timeout=20.0).clean
    worker = adapter._save if side == "save" else adapter._recv
    assert not worker._thread.is_alive()


def test_ch12_a_stop_just_before_the_wait_is_seen(conn: Conn, make_adapter: Make) -> None:
    adapter = make_adapter(conn, 0, 0, waiter=LongSleep(), threads=False)
    adapter.load_async("r")
    save_pause, recv_pause = adapter.step_save(), adapter.step_receive()
    adapter.stop()
    adapter.step_receive()  # as when the stop came just before this step
    adapter.step_save()
    adapter._outbox.sleep(save_pause)  # each would sleep for an hour
    adapter._inbox.sleep(recv_pause)


def test_ch12_work_that_comes_just_before_the_wait_is_seen(conn: Conn, make_adapter: Make) -> None:
    adapter = make_adapter(conn, 0, 0, waiter=LongSleep(), threads=False)
    save_pause, recv_pause = adapter.step_save(), adapter.step_receive()
    adapter.save_async("r", 1, False)
    adapter.load_async("r")
    adapter._outbox.sleep(save_pause)
    adapter._inbox.sleep(recv_pause)


def test_ch12_saving_wakes_a_thread_that_sleeps(conn: Conn, make_adapter: Make, eventually: Eventually) -> None:
    sleep = LongSleep()
    adapter = make_adapter(conn, 0, waiter=sleep)
    adapter.save_async("r", 1, False)
    eventually(lambda: adapter._outbox._sleeping)
    adapter.save_async("r", 2, False)
    eventually(lambda: conn.puts == ["r_0_0", "r_0_1"])


def test_ch12_threads_are_daemons_with_names_and_start_when_needed(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate]
) -> None:
    def mine() -> dict[str, bool]:
        return {t.name: t.daemon for t in threading.enumerate() if t.name in {"chunks-save-7", "chunks-recv-7"}}

    adapter = make_adapter(wire, 7, 6)
    assert not mine()
    gate = make_gate()
    wire.on_put = gate
    adapter.save_async("r", 1, True)
    assert mine() == {"chunks-save-7": True}
    adapter.load_async("r")
    assert mine() == {"chunks-save-7": True, "chunks-recv-7": True}


def test_ch12_an_adapter_that_was_never_used_stops(conn: Conn) -> None:
    adapter = ChunkAdapter(conn, 0)
    assert adapter.stop() == StopReport()


def test_ch12_a_blocked_transport_does_not_hold_up_the_stop(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], eventually: Eventually
) -> None:
    put_gate, get_gate = make_gate(), make_gate()
    wire.on_put, wire.on_get = put_gate, get_gate
    wire.store["r_0_0"] = {"data": "late", "finished": True}
    adapter = make_adapter(wire, 0, 0)
    adapter.load_async("r")
    adapter.save_async("x", 1, False)
    put_gate.wait_for_visitor()
    get_gate.wait_for_visitor()
    adapter.save_async("x", 2, True)
    report = adapter.stop(timeout=0.0)
    assert dict(report.unsent) == {"x": 2}
    assert set(report.stuck) == {"chunks-save-0", "chunks-recv-0"}
    assert not report.clean
    put_gate.open()
    get_gate.open()
    eventually(lambda: not any(t.name in report.stuck for t in threading.enumerate()))
    assert adapter.poll_ready() == {}
    assert wire.puts == ["x_0_0"]
    adapter.assert_quiescent()


def test_ch12_a_stop_in_the_middle_of_a_batch_puts_no_more(wire: Wire, pair: Pair) -> None:
    reports: list[StopReport] = []
    wire.on_put = lambda _key, _message: reports.append(pair.snd.stop())
    pair.save("r", 1, 2, 3, final=True)
    pair.send()
    assert wire.puts == ["r_0_0"]
    assert dict(reports[0].unsent) == {"r": 3}


def test_ch12_stopping_from_a_callback_does_not_deadlock(
    wire: Wire, make_adapter: Make, eventually: Eventually
) -> None:
    reports: list[StopReport] = []
    adapter: ChunkAdapter = make_adapter(wire, 0, 0, on_ready=lambda: reports.append(adapter.stop(timeout=0.0)))
    adapter.load_async("r")
    adapter.save_async("r", 1, True)
    eventually(lambda: reports)
    assert "chunks-recv-0" in reports[0].stuck
    assert adapter.poll_ready() == {"r": [{"data": 1, "finished": True}]}


def test_ch21_drain_puts_what_was_saved(
    wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate], eventually: Eventually
) -> None:
    gate = make_gate()
    wire.on_put = gate
    adapter = make_adapter(wire, 0)
    for number in range(200):
        adapter.save_async("r", number, number == 199)
    gate.wait_for_visitor()
    reports: list[StopReport] = []
    stopper = threading.Thread(target=lambda: reports.append(adapter.stop(drain=True, timeout=20.0)))
    stopper.start()
    eventually(lambda: adapter._outbox.closed)
    with pytest.raises(Closed):
        adapter.save_async("r", "late", False)
    gate.open()
    stopper.join(20.0)
    assert reports[0].clean
    assert len(wire.puts) == 200
    adapter.assert_quiescent()


def test_ch21_drain_goes_on_retrying(wire: Wire, make_adapter: Make) -> None:
    left = [4]

    def fail(_key: ChunkKey, _message: Message) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise ConnectionError("down")

    wire.on_put = fail
    adapter = make_adapter(wire, 0)
    adapter.save_async("r", 1, True)
    assert adapter.stop(drain=True, timeout=20.0).clean
    assert wire.puts == ["r_0_0"]


def test_ch21_without_drain_what_waits_is_reported(wire: Wire, pair: Pair) -> None:
    pair.save("a", 1, 2)
    pair.save("b", 1, final=True)
    report = pair.snd.stop()
    assert dict(report.unsent) == {"a": 2, "b": 1}
    assert not wire.attempts
    pair.assert_quiescent()


def test_ch21_what_cannot_be_drained_in_time_is_reported(wire: Wire, make_pair: MakePair, recorder: Any) -> None:
    def fail(key: ChunkKey, _message: Message) -> None:
        if key.request == "bad":
            raise ConnectionError("down")

    wire.on_put = fail
    pair = make_pair(wire, log=recorder)
    pair.save("bad", 1, final=True)
    pair.save("good", 1, final=True)
    report = pair.snd.stop(drain=True)
    assert dict(report.unsent) == {"bad": 1}
    assert wire.puts == ["good_0_0"]
    (event,) = recorder.named("chunk.stop_unclean")
    assert event["unsent"] == 1


def test_ch21_drain_sends_the_terminal_of_a_cancel_that_still_lingers(wire: Wire, pair: Pair) -> None:
    pair.save("r", 1)
    pair.send()
    pair.snd.cancel_sender("r")
    assert pair.snd.stop(drain=True).clean
    assert wire.messages[-1]["cancelled"] is True


def test_ch21_stop_is_idempotent_and_gives_everybody_the_same_report(pair: Pair) -> None:
    pair.save("r", 1)
    first = pair.snd.stop()
    assert pair.snd.stop() is first
    assert pair.snd.stop(drain=True, timeout=0.0) is first


def test_ch21_concurrent_stops_share_one_report(wire: Wire, make_adapter: Make, make_gate: Callable[[], Gate]) -> None:
    gate = make_gate()
    wire.on_put = gate
    adapter = make_adapter(wire, 0)
    adapter.save_async("r", 1, True)
    gate.wait_for_visitor()
    reports: list[StopReport] = []
    threads = [
        threading.Thread(target=lambda: reports.append(adapter.stop(drain=True, timeout=20.0))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    gate.open()
    for thread in threads:
        thread.join(20.0)
    assert len(reports) == 4
    assert len(set(map(id, reports))) == 1
    assert reports[0].clean


def test_ch21_a_stopped_adapter_says_so_and_still_gives_what_it_has(pair: Pair) -> None:
    pair.rcv.load_async("r")
    pair.save("r", 1)
    pair.send()
    pair.receive()
    pair.snd.stop()
    pair.rcv.stop()
    with pytest.raises(Closed, match="takes no further chunk of request 'r'"):
        pair.save("r", 2)
    with pytest.raises(Closed, match="cannot load request 'x'"):
        pair.rcv.load_async("x")
    pair.snd.cancel_sender("r")
    pair.rcv.cleanup_receiver("other")
    assert not pair.snd.wait_for_room("r", 0.0)
    assert pair.snd.step_save() > 0
    assert pair.rcv.step_receive() > 0
    assert pair.rcv.poll_ready() == {"r": [{"data": 1, "finished": False}]}
    pair.assert_quiescent()


def test_ch21_leaving_the_block_stops(conn: Conn) -> None:
    with ChunkAdapter(conn, 0) as adapter:
        adapter.save_async("r", 1, True)
    with pytest.raises(Closed):
        adapter.save_async("r", 2, True)
