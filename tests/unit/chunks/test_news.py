"""Whom the RECV thread visits when the transport's hints name requests, and how it takes the shared lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stagewire_chunks import ChunkAdapter
from stagewire_chunks.courtesy import Courteous
from stagewire_chunks.news import News

if TYPE_CHECKING:
    from tests.unit.chunks.conftest import Pair

Make = Callable[..., ChunkAdapter]
MakePair = Callable[..., "Pair"]
Eventually = Callable[[Callable[[], object]], None]


class NamingWire:
    """A double whose hints name the request that a chunk was put for."""

    def __init__(self) -> None:
        self.store: dict[str, Mapping[str, Any]] = {}
        self.gets: list[str] = []
        self.hint: Callable[..., None] = lambda *_requests: None
        self.silent = False

    def put(self, key: Any, message: Mapping[str, Any]) -> None:
        self.store[key] = message
        if not self.silent:
            self.hint(key.request)

    def get(self, key: Any) -> Mapping[str, Any] | None:
        self.gets.append(key)
        return self.store.pop(key, None)

    def set_wakeup(self, hint: Callable[..., None]) -> None:
        self.hint = hint


def loaded(make_pair: MakePair, *requests: str) -> tuple[NamingWire, Pair]:
    """Return a pair whose first round, in which everybody is visited, is over."""
    wire = NamingWire()
    pair = make_pair(wire)
    for request in requests:
        pair.rcv.load_async(request)
    pair.rcv.step_receive()
    wire.gets.clear()
    return wire, pair


def test_ch11_only_those_that_were_named_are_visited(make_pair: MakePair) -> None:
    wire, pair = loaded(make_pair, "a", "b", "c")
    pair.save("b", 1)
    pair.send()
    pair.rcv.step_receive()
    assert set(wire.gets) == {"b_0_0", "b_0_1"}
    pair.poll()
    assert pair.data("b") == [1]


def test_ch11_after_progress_the_next_round_is_due_only_if_somebody_was_named(make_pair: MakePair) -> None:
    _, pair = loaded(make_pair, "a", "b")
    pair.save("a", 1)
    pair.send()
    assert pair.rcv.step_receive() == 0.001
    pair.save("a", *range(100))
    pair.send()
    assert pair.rcv.step_receive() == 0.0  # more than one burst
    pair.receive()
    pair.poll()
    assert pair.data("a") == [1, *range(100)]


def test_ch11_a_hint_that_was_missed_is_made_up_for_by_the_timed_round(make_pair: MakePair) -> None:
    wire, pair = loaded(make_pair, "a", "b")
    wire.silent = True
    pair.save("a", 1)
    pair.send()
    pair.rcv.step_receive()
    pair.poll()
    assert pair.data("a") == [1]


def test_ch11_everybody_is_visited_every_10_ms_however_busy_the_named_are(make_pair: MakePair) -> None:
    wire, pair = loaded(make_pair, "busy", "missed")
    wire.silent = True
    pair.save("missed", 1)
    pair.send()
    wire.silent = False
    came = []
    for number in range(12):
        pair.save("busy", number)
        pair.send()
        pair.rcv.step_receive()
        came.append("missed" in pair.poll())
        pair.clock.advance(0.0015)
    assert came.index(True) == 7


def test_ch11_a_name_that_is_not_registered_is_ignored(make_pair: MakePair) -> None:
    wire, pair = loaded(make_pair, "a")
    wire.hint("stranger")
    assert pair.rcv.step_receive() > 0
    assert not wire.gets
    assert pair.rcv.step_receive() < 0.1  # somebody is registered all the same


def test_ch11_a_new_registration_is_visited_although_nobody_named_it(make_pair: MakePair) -> None:
    wire, pair = loaded(make_pair, "a")
    pair.save("b", "early")
    pair.send()
    pair.rcv.step_receive()
    pair.rcv.load_async("b")
    wire.hint("a")
    pair.rcv.step_receive()
    pair.poll()
    assert pair.data("b") == ["early"]


def test_names_that_nobody_looks_at_are_bounded() -> None:
    news = News(0.01)
    for number in range(20_000):
        news.note([f"r{number}"])
    assert len(news._named) < 5_000
    assert news.choose({"last": 1}, 0.0) == [1]


def test_a_sender_that_receives_nothing_asks_for_no_hints(make_adapter: Make) -> None:
    wire = NamingWire()
    before = wire.hint
    make_adapter(wire, 0)
    assert wire.hint is before


def test_courtesy_lets_the_holder_go_on_and_then_takes_the_lock(eventually: Eventually) -> None:
    lock, entered = threading.Lock(), threading.Event()

    def take() -> None:
        with Courteous(lock):
            assert lock.locked()
            entered.set()

    lock.acquire()
    thread = threading.Thread(target=take)
    thread.start()
    assert not entered.is_set()
    lock.release()
    assert entered.wait(20.0)
    thread.join()
    eventually(lambda: not lock.locked())
