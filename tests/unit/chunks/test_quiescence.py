from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stagewire import Permanent, TransportFull
from stagewire_chunks import ChunkAdapter

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import ManualClock, Message, Pair, RunsWire, Wire

Make = Callable[..., ChunkAdapter]
MakePair = Callable[..., "Pair"]
Eventually = Callable[[Callable[[], object]], None]


def build(payload: Any) -> Any:
    if payload == "unbuildable":
        raise ValueError("cannot be built")
    return payload


class Forgetful:
    """A transport double that keeps nothing longer than it must, so that what grows is the adapter's."""

    def __init__(self) -> None:
        self.store: dict[str, Message] = {}
        self.attempts: dict[str, int] = {}

    def put(self, key: str, message: Message) -> None:
        if message["data"] == "unsendable":
            raise Permanent("no")
        if message["data"] == "full" and self.attempts.setdefault(key, 1):
            self.attempts[key] = 0
            raise TransportFull("full")
        self.store[key] = message

    def get(self, key: str) -> Message | None:
        return self.store.pop(key, None)

    def cleanup(self, request: str) -> None:
        for key in [key for key in self.store if key.startswith(f"{request}_")]:
            del self.store[key]


KINDS = 7


def run_request(adapter: ChunkAdapter, number: int) -> None:
    """Run one request of one of the kinds: finished, failed, cancelled, cleaned, refused for a while."""
    request, kind = f"r{number}", number % KINDS
    adapter.load_async(request)
    adapter.save_async(request, [number], False)
    match kind:
        case 0:
            adapter.save_async(request, "end", True)
        case 1:
            adapter.save_async(request, "unbuildable", False)
            adapter.save_async(request, "end", True)
        case 2:
            adapter.save_async(request, "unsendable", True)
        case 3:
            adapter.save_async(request, "end", True)
            adapter.cancel_sender(request)
        case 4:
            adapter.cancel_sender(request)
        case 5:
            adapter.save_async(request, "end", True)
            adapter.cleanup_receiver(request)
        case 6:
            adapter.save_async(request, "full", False)
            adapter.save_async(request, "end", True)


def run_requests(adapter: ChunkAdapter, clock: ManualClock, numbers: range) -> int:
    """Run them, a hundred at a time; returns how many terminals were received."""
    terminals = 0
    for start in range(numbers.start, numbers.stop, 100):
        for number in range(start, min(start + 100, numbers.stop)):
            run_request(adapter, number)
        for _ in range(8):
            while not adapter.step_save():
                pass
            while not adapter.step_receive():
                pass
            clock.advance(0.1)
            for messages in adapter.poll_ready().values():
                terminals += messages[-1]["finished"]
        adapter.poll_failed()
    return terminals


def test_ch20_ten_thousand_requests_leave_nothing(make_clock: Callable[[], ManualClock]) -> None:
    clock, wire = make_clock(), Forgetful()
    adapter = ChunkAdapter(wire, 0, 0, build, clock=clock, threads=False)
    run_requests(adapter, clock, range(1_000))
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        terminals = run_requests(adapter, clock, range(1_000, 11_000))
        wire.store.clear()
        wire.attempts.clear()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    cleaned = len([number for number in range(1_000, 11_000) if number % KINDS == 5])
    assert terminals == 10_000 - cleaned
    adapter.assert_quiescent()
    assert not adapter._outbox.backlog._timers
    assert after - before < 1_000_000


def test_ch20_ten_thousand_requests_with_threads_leave_nothing(
    runs_wire: RunsWire, make_adapter: Make, eventually: Eventually
) -> None:
    adapter = make_adapter(runs_wire, 0, 0, build)
    finished: set[str] = set()
    for number in range(10_000):
        request = f"r{number}"
        adapter.load_async(request)
        adapter.save_async(request, number, False)
        adapter.save_async(request, "unbuildable" if number % 3 == 0 else "end", True)
        if number % 3 == 1:
            adapter.cancel_sender(request)
        finished |= adapter.poll_ready().keys()

    def all_received() -> bool:
        finished.update(adapter.poll_ready())
        return len(finished) == 10_000 and not adapter.stats()["receiving"]

    eventually(all_received)
    adapter.poll_ready()
    adapter.assert_quiescent()


def test_ch20_what_is_left_is_named(pair: Pair) -> None:
    pair.save("r", 1)
    with pytest.raises(AssertionError, match=r"not quiescent.*'sending': 1, 'queued': 1"):
        pair.snd.assert_quiescent()
    pair.rcv.load_async("r")
    with pytest.raises(AssertionError, match="'receiving': 1"):
        pair.rcv.assert_quiescent()
    pair.send()
    pair.receive()
    pair.rcv.cleanup_receiver("r")
    with pytest.raises(AssertionError, match="'sending': 1"):
        pair.snd.assert_quiescent()  # the use is still open: neither final nor cancel has come


def test_ch20_what_was_received_and_never_polled_is_a_leftover(pair: Pair) -> None:
    pair.rcv.load_async("r")
    pair.save("r", b"abc", final=True)
    pair.send()
    pair.receive()
    with pytest.raises(AssertionError, match="'unread_requests': 1, 'unread': 1, 'unread_bytes': 19"):
        pair.rcv.assert_quiescent()
    pair.poll()
    pair.assert_quiescent()


def test_stats_count_what_was_done(wire: Wire, make_pair: MakePair) -> None:
    pair = make_pair(wire, build=build)
    pair.rcv.load_async("r")
    pair.save("r", 1, 2, final=True)
    pair.save("bad", "unbuildable")
    pair.settle(1.0)
    sent, received = pair.snd.stats(), pair.rcv.stats()
    assert (sent["puts"], sent["failed"], sent["failures"], sent["queued_bytes"]) == (3, 1, 1, 0)
    assert (received["gets"], received["get_errors"], received["stalled"], received["stale"]) == (2, 0, 0, 0)
    assert received["polls"] == 2
