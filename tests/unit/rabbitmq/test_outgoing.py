"""The sender's windows and runs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stagewire import ChunkKey, Permanent, Retryable, TransportFull
from stagewire.testing import ManualClock
from stagewire_rabbitmq.outgoing import SILENCE, SMALL, Outgoing, Sent, Window
from stagewire_rabbitmq.runs import GONE

NAME = ("a", "r")


def key(chunk: int, request: str = "r") -> ChunkKey:
    return ChunkKey(request, "a", chunk)


def message(*, finished: bool = False) -> Any:
    return {"data": None, "finished": finished}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def outgoing(clock: ManualClock) -> Outgoing:
    return Outgoing("a->b", Window(3, 100), clock, itertools.count(1).__next__)


def put(outgoing: Outgoing, chunk: int, size: int = 1, *, finished: bool = False, request: str = "r") -> Sent:
    sent = outgoing.admit(key(chunk, request), message(finished=finished), size)
    outgoing.settle([(sent, None)])
    return sent


def test_tr5_a_request_is_full_by_chunks_until_the_reader_grants(outgoing: Outgoing) -> None:
    (run,) = {put(outgoing, chunk).run for chunk in range(3)}
    with pytest.raises(TransportFull, match=r"edge 'a->b': 3 chunks \(3 bytes\) of request 'r' are unread"):
        put(outgoing, 3)
    assert outgoing.grant(NAME, run, 2)
    assert outgoing.unread() == (1, 1)
    put(outgoing, 3)


def test_tr5_a_request_is_full_by_bytes_and_a_larger_chunk_travels_alone(outgoing: Outgoing) -> None:
    run = put(outgoing, 0, 1_000).run
    with pytest.raises(TransportFull):
        put(outgoing, 1, 1)
    assert outgoing.grant(NAME, run, 1)
    put(outgoing, 1, 60)
    with pytest.raises(TransportFull):
        put(outgoing, 2, 60)


def test_tr4_a_full_request_touches_no_other(outgoing: Outgoing) -> None:
    for chunk in range(3):
        put(outgoing, chunk)
    put(outgoing, 0, request="other")


def test_tr3_a_repeat_is_never_refused_and_counts_once(outgoing: Outgoing) -> None:
    run = put(outgoing, 0).run
    put(outgoing, 1)
    assert put(outgoing, 0).run == run
    outgoing.grant(NAME, run, 1)
    put(outgoing, 0)
    assert outgoing.unread() == (1, 1)


def test_tr5_grants_are_cumulative_and_old_ones_change_nothing(outgoing: Outgoing) -> None:
    run = put(outgoing, 0).run
    put(outgoing, 1)
    assert outgoing.grant(NAME, run, 2)
    assert not outgoing.grant(NAME, run, 1)
    assert not outgoing.grant(NAME, run + 1, GONE), "of another run"
    assert not outgoing.grant(("a", "unknown"), run, 1)
    assert outgoing.unread() == (0, 0)


@pytest.mark.parametrize("refusal", [TransportFull("no"), Permanent("no")])
def test_tr5_what_was_refused_leaves_no_trace(outgoing: Outgoing, refusal: Exception) -> None:
    sent = outgoing.admit(key(0), message(finished=True), 5)
    outgoing.settle([(sent, refusal)])
    assert outgoing.unread() == (0, 0)
    assert put(outgoing, 0).run == sent.run, "its run goes on"


def test_tr7_what_may_have_arrived_stays_in_the_window(outgoing: Outgoing) -> None:
    sent = outgoing.admit(key(0), message(), 5)
    outgoing.settle([(sent, Retryable("who knows"))])
    assert outgoing.unread() == (1, 5)
    assert put(outgoing, 0).run == sent.run


def test_ch7_chunk_0_after_a_whole_run_begins_the_next_one(outgoing: Outgoing) -> None:
    first = put(outgoing, 0).run
    assert put(outgoing, 1, finished=True).run == first
    second = put(outgoing, 0).run
    assert second != first
    outgoing.settle([(Sent(key(1), first, finished=True, size=1), None)])
    assert outgoing.unread() == (1, 1), "news of the last run do not touch the next"


def test_ch7_a_run_of_one_chunk_is_told_from_its_repeat_by_the_message(outgoing: Outgoing) -> None:
    only = message(finished=True)
    first = outgoing.admit(key(0), only, 1)
    outgoing.settle([(first, None)])
    assert outgoing.admit(key(0), only, 1).run == first.run
    assert outgoing.admit(key(0), message(finished=True), 1).run != first.run


def test_ch7_a_large_message_is_remembered_only_while_its_fate_is_unknown(outgoing: Outgoing) -> None:
    large = message(finished=True)
    first = outgoing.admit(key(0), large, SMALL + 1)
    outgoing.settle([(first, Retryable("who knows"))])
    again = outgoing.admit(key(0), large, SMALL + 1)
    assert again.run == first.run
    outgoing.settle([(again, None)])
    assert outgoing.admit(key(0), large, SMALL + 1).run != first.run


def test_tr5_a_closed_window_asks_after_a_silence_and_not_more_often(outgoing: Outgoing, clock: ManualClock) -> None:
    run = put(outgoing, 0).run
    assert outgoing.mark(key(0)) is None
    clock.advance(SILENCE)
    assert outgoing.mark(key(0)) == (run, 0)
    assert outgoing.mark(key(0)) is None
    clock.advance(SILENCE)
    assert outgoing.mark(key(0)) == (run, 0)
    outgoing.grant(NAME, run, 1)
    clock.advance(SILENCE)
    assert outgoing.mark(key(0)) is None, "nothing confirmed is in the window"


def test_tr5_nothing_is_asked_of_what_was_not_confirmed(outgoing: Outgoing, clock: ManualClock) -> None:
    outgoing.admit(key(0), message(), 1)
    clock.advance(2 * SILENCE)
    assert outgoing.mark(key(0)) is None


def test_tr6_what_is_forgotten_begins_anew(outgoing: Outgoing) -> None:
    first = put(outgoing, 1).run
    outgoing.forget("r")
    assert put(outgoing, 2).run != first


def test_a_whole_run_leaves_the_window(outgoing: Outgoing) -> None:
    put(outgoing, 0)
    put(outgoing, 1, finished=True)
    assert outgoing.unread() == (0, 0)
