"""Which chunk belongs to which key, and which message may be acknowledged when."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stagewire import ChunkKey
from stagewire.testing import ManualClock
from stagewire_rabbitmq import demux as module
from stagewire_rabbitmq.counters import Counters
from stagewire_rabbitmq.demux import Demux, GrantSteps
from stagewire_rabbitmq.runs import GONE, Arrival, Frame, Grant

NAME = ("a", "r")
tags = itertools.count(1)


def key(chunk: int, request: str = "r") -> ChunkKey:
    return ChunkKey(request, "a", chunk)


def arrival(chunk: int, *, run: int = 1, request: str = "r", finished: bool = False, size: int = 10) -> Arrival:
    return Arrival(("a", request), run, chunk, {"data": (request, run, chunk), "finished": finished}, size, 0.0)


def mark(chunk: int, run: int = 1) -> Arrival:
    return Arrival(NAME, run, chunk, None, 0, 0.0)


def frame(source: str = "main", epoch: int = 1, size: int = 10) -> Frame:
    return Frame(source, next(tags), epoch, bytes(size), "sender")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def demux(clock: ManualClock) -> Demux:
    return Demux(Counters(), clock, lambda: 5.0, GrantSteps(2, 1_000))


def data(demux: Demux, chunk: int, request: str = "r") -> Any:
    message, _due = demux.take(key(chunk, request))
    return None if message is None else message["data"]


def test_tr2_a_message_is_acknowledged_when_the_last_of_its_chunks_was_taken(demux: Demux) -> None:
    both = frame()
    assert demux.accept(both, [arrival(0), arrival(0, request="other")]) == []
    assert demux.unread == (1, 10)
    assert demux.take(key(0))[1] == []
    assert demux.take(key(0, "other"))[1] == [both]
    assert demux.unread == (0, 0)


def test_tr2_an_empty_message_is_acknowledged_at_once(demux: Demux) -> None:
    empty = frame()
    assert demux.accept(empty, []) == [empty]


def test_tr3_a_repeat_is_dropped_before_and_after_it_was_taken(demux: Demux) -> None:
    demux.accept(frame(), [arrival(0)])
    repeat = frame()
    assert demux.accept(repeat, [arrival(0)]) == [repeat], "the first is still there"
    assert data(demux, 0) == ("r", 1, 0)
    late = frame()
    assert demux.accept(late, [arrival(0)]) == [late]
    assert data(demux, 0) is None
    assert demux.counters.duplicates == 2


def test_tr3_a_late_duplicate_of_an_ended_request_revives_nothing(demux: Demux) -> None:
    demux.accept(frame(), [arrival(0, finished=True)])
    assert data(demux, 0) is not None
    late = frame()
    assert demux.accept(late, [arrival(0, finished=True)]) == [late]
    assert demux.sizes() == {"streams": 0, "held": 0, "frames": 0, "ended": 1}


def test_tr3_the_memory_of_ended_runs_is_bounded(demux: Demux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    for number in range(10):
        demux.accept(frame(), [arrival(0, request=f"r{number}", finished=True)])
        assert data(demux, 0, f"r{number}") is not None
    assert demux.sizes()["ended"] == 3


def test_tr3_what_a_lost_channel_delivered_can_still_be_taken_and_is_not_taken_twice(demux: Demux) -> None:
    old = frame(epoch=1)
    demux.accept(old, [arrival(0), arrival(1)])
    demux.lose("main", 1)
    assert demux.unread == (0, 0)
    assert demux.take(key(0)) == ({"data": ("r", 1, 0), "finished": False}, []), "its tag is not good any more"
    again = frame(epoch=2)
    assert demux.accept(again, [arrival(0), arrival(1)], redelivered=True) == []
    assert demux.take(key(1))[1] == [again]
    assert (demux.counters.redeliveries, demux.counters.duplicates) == (1, 2)


def test_tr3_a_gap_is_named_once_it_is_old(demux: Demux, clock: ManualClock) -> None:
    demux.accept(frame(), [arrival(0), arrival(3)])
    assert data(demux, 0) is not None
    assert data(demux, 1) is None
    assert demux.gap(key(1), 60) is None
    clock.advance(60)
    assert data(demux, 1) is None
    assert demux.gap(key(1), 60) == 3
    assert demux.gap(key(2), 60) is None, "that one was not asked for"
    demux.accept(frame(), [arrival(1)])
    assert data(demux, 1) is not None
    assert demux.gap(key(1), 60) is None


def test_tr3_waiting_for_what_was_not_sent_yet_is_no_gap(demux: Demux, clock: ManualClock) -> None:
    assert data(demux, 0) is None
    clock.advance(1_000)
    assert demux.gap(key(0), 60) is None


def test_ch7_runs_are_read_one_after_the_other(demux: Demux) -> None:
    demux.accept(frame(), [arrival(0), arrival(1, finished=True), arrival(0, run=2), arrival(1, run=2, finished=True)])
    assert [data(demux, 0), data(demux, 1), data(demux, 0), data(demux, 1)] == [
        ("r", 1, 0), ("r", 1, 1), ("r", 2, 0), ("r", 2, 1),
    ]  # fmt: skip


def test_tr9_several_chunks_are_taken_up_to_the_end_of_their_run(demux: Demux) -> None:
    demux.accept(frame(), [arrival(0), arrival(1, finished=True), arrival(0, run=2), arrival(2, run=2)])
    assert demux.take(key(1))[0] is not None
    messages, _due = demux.take_many(key(0), 10)
    assert [message["data"] for message in messages] == [("r", 1, 0)], "what follows is of the next run"


def test_tr6_what_nobody_asks_for_expires_and_is_named(demux: Demux, clock: ManualClock) -> None:
    demux.accept(frame(), [arrival(0, request="alive")])
    lonely = frame()
    demux.accept(lonely, [arrival(0)])
    clock.advance(6)
    assert data(demux, 5, "alive") is None
    clock.advance(6)
    assert demux.expire(10) == ([NAME], [lonely])
    assert demux.grants() == [Grant("sender", NAME, 1, GONE)]
    late = frame()
    assert demux.accept(late, [arrival(1)]) == [late], "what comes after it is dropped"
    assert data(demux, 0, "alive") is not None


def test_tr6_cleanup_gives_runs_up_and_tells_the_sender(demux: Demux) -> None:
    held = frame()
    demux.accept(held, [arrival(0)])
    assert demux.cleanup("r") == [held]
    assert demux.grants() == [Grant("sender", NAME, 1, GONE)]
    assert demux.cleanup("unknown") == []


def test_tr5_grants_come_after_some_chunks_or_bytes_and_not_at_the_end(demux: Demux) -> None:
    demux.accept(frame(), [arrival(0), arrival(1), arrival(2, size=2_000), arrival(3, finished=True)])
    seen = []
    for chunk in range(4):
        data(demux, chunk)
        seen.append([grant.base for grant in demux.grants()])
    assert seen == [[], [2], [3], []]


def test_tr5_chunks_taken_out_of_order_are_granted_when_nothing_before_them_is_left(demux: Demux) -> None:
    demux.accept(frame(), [arrival(chunk) for chunk in range(4)])
    for chunk in (3, 1, 2):
        data(demux, chunk)
    assert not demux.owing
    data(demux, 0)
    assert [grant.base for grant in demux.grants()] == [4]


def test_tr5_a_mark_is_answered_with_what_is_still_here(demux: Demux) -> None:
    demux.accept(frame(), [arrival(2)])
    demux.accept(frame(), [mark(4)])
    assert demux.grants() == [Grant("sender", NAME, 1, 2)], "0 and 1 went to a predecessor"
    assert data(demux, 2) is not None
    demux.accept(frame(), [mark(4)])
    assert demux.grants() == [Grant("sender", NAME, 1, 5)]
    demux.accept(frame(), [arrival(4)])
    assert demux.counters.duplicates == 1


def test_tr5_a_mark_of_an_ended_run_opens_its_window_for_good(demux: Demux) -> None:
    demux.accept(frame(), [arrival(0)])
    demux.cleanup("r")
    demux.grants()
    demux.accept(frame(), [mark(0)])
    assert demux.grants() == [Grant("sender", NAME, 1, GONE)]


def test_tr5_a_mark_means_nothing_while_chunks_may_be_elsewhere(demux: Demux) -> None:
    away = frame()
    demux.accept(away, [arrival(0)])
    assert demux.park(away)
    demux.accept(frame(), [mark(0)])
    demux.unpark()
    demux.accept(frame(), [mark(0)], certain=False)
    assert demux.grants() == []
    demux.accept(frame("parked"), [arrival(0)])
    assert data(demux, 0) is not None


def test_rabbitmq_trap_what_nobody_asks_for_is_parked_when_somebody_waits(demux: Demux, clock: ManualClock) -> None:
    lonely = frame()
    demux.accept(lonely, [arrival(0)])
    assert list(demux.idle_frames(1)) == [], "nobody waits"
    assert data(demux, 0, "wanted") is None
    assert list(demux.idle_frames(1)) == [lonely]
    assert demux.park(lonely)
    assert not demux.park(lonely)
    assert not demux.wants_parked()
    assert data(demux, 0) is None
    assert demux.wants_parked()
    clock.advance(2)
    demux.unpark()
    assert not demux.wants_parked()
