"""The runs of one request against a model that remembers everything."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stagewire import ChunkMessage, Permanent
from stagewire_local.runs import SMALL, Run, Stream, Verdict


def message(data: object, *, finished: bool = False) -> ChunkMessage:
    return {"data": data, "finished": finished}


def put(stream: Stream, chunk: int, what: ChunkMessage, size: int = 10, *, quick: bool = False) -> Verdict:
    if quick and stream.goes_on(chunk, (what, size, 0.0), chunks=1_000, room=10_000):
        return Verdict.NEW
    verdict = stream.judge(chunk, what)
    if verdict is Verdict.NEW:
        stream.store(chunk, (what, size, 0.0))
    elif verdict is Verdict.UNWANTED:
        stream.note_unwanted(chunk, what)
    return verdict


class StreamMachine(RuleBasedStateMachine):
    """A writer that puts runs in order and repeats itself, a reader that takes in order and gives up."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = Stream(0, 0.0)
        self.run = self.next = 0
        self.sent: list[tuple[int, ChunkMessage]] = []
        self.wanted: list[tuple[int, ChunkMessage]] = []
        self.unwanted = False

    @rule(finished=st.booleans(), quick=st.booleans())
    def put_next(self, finished: bool, quick: bool) -> None:
        what = message((self.run, self.next), finished=finished)
        if self.next == 0:
            self.sent, self.unwanted = [], False
        verdict = put(self.stream, self.next, what, quick=quick)
        assert verdict is (Verdict.UNWANTED if self.unwanted else Verdict.NEW)
        self.sent.append((self.next, what))
        if not self.unwanted:
            self.wanted.append((self.next, what))
        self.run, self.next = (self.run + 1, 0) if finished else (self.run, self.next + 1)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), quick=st.booleans())
    def put_again(self, data: st.DataObject, quick: bool) -> None:
        """Repeat something of the newest run; only its last chunk can be repeated once the run has ended."""
        ended = self.next == 0
        chunk, what = self.sent[-1] if ended else data.draw(st.sampled_from(self.sent))
        expected = Verdict.UNWANTED if self.unwanted and not ended and chunk else Verdict.REPEAT
        if self.unwanted and chunk == 0:
            return  # would begin a new run: the id is free as soon as its reader gave it up
        assert put(self.stream, chunk, what, quick=quick) is expected

    @precondition(lambda self: self.wanted)
    @rule()
    def take_next(self) -> None:
        chunk, what = self.wanted.pop(0)
        item = self.stream.take(chunk)
        assert item is not None
        assert item[0] is what

    @rule(chunk=st.integers(0, 5))
    def take_something_absent(self, chunk: int) -> None:
        if not self.wanted:
            assert self.stream.take(chunk) is None

    @precondition(lambda self: self.sent and not self.stream.ended)
    @rule()
    def give_up(self) -> None:
        self.stream.give_up("cleaned")
        self.unwanted = self.next > 0
        self.wanted.clear()

    @precondition(lambda self: self.unwanted)
    @rule()
    def writer_gives_up_too(self) -> None:
        """What the reader gave up may never be finished; its id is free for the next run all the same."""
        self.run, self.next, self.sent = self.run + 1, 0, []

    @invariant()
    def counts_agree(self) -> None:
        assert self.stream.count == len(self.wanted)
        assert self.stream.bytes == 10 * len(self.wanted)
        assert self.stream.ended == (not self.wanted and (self.unwanted or (self.next == 0 and self.run > 0)))


StreamMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestStream = StreamMachine.TestCase


def test_tr3_chunks_may_be_put_and_taken_out_of_order() -> None:
    stream = Stream(0, 0.0)
    messages = [message(number, finished=number == 4) for number in range(5)]
    assert [put(stream, number, messages[number]) for number in (1, 4, 0)] == [Verdict.NEW] * 3
    for number in (4, 1):
        item = stream.take(number)
        assert item is not None
        assert item[0] is messages[number]
        assert put(stream, number, messages[number]) is Verdict.REPEAT
    assert stream.count == 1
    assert [put(stream, number, messages[number]) for number in (3, 2)] == [Verdict.NEW] * 2
    assert [item[0]["data"] for number in (0, 2, 3) if (item := stream.take(number))] == [0, 2, 3]
    assert stream.count == 0
    assert stream.ended
    assert put(stream, 4, messages[4]) is Verdict.REPEAT


def test_tr5_a_chunk_goes_on_at_once_only_within_the_bounds_and_in_turn() -> None:
    stream = Stream(0, 0.0)
    first, second = ((message(number), 10, 0.0) for number in range(2))
    assert not stream.goes_on(0, first, chunks=0, room=20)
    assert not stream.goes_on(0, first, chunks=2, room=9)
    assert not stream.goes_on(1, second, chunks=2, room=20)
    assert stream.goes_on(0, first, chunks=2, room=20)
    assert not stream.goes_on(0, first, chunks=2, room=20)
    assert not stream.goes_on(1, second, chunks=1, room=20)
    assert not stream.goes_on(1, second, chunks=2, room=19)
    assert stream.goes_on(1, second, chunks=2, room=20)
    assert (stream.count, stream.bytes) == (2, 20)


def test_a_chunk_past_the_final_one_is_an_error() -> None:
    stream = Stream(0, 0.0)
    put(stream, 1, message("end", finished=True))
    with pytest.raises(Permanent, match="chunk 2 lies past the final chunk 1"):
        put(stream, 2, message("more"))


@pytest.mark.parametrize("size", [SMALL, SMALL + 1])
def test_ch7_an_only_chunk_is_told_from_the_first_of_the_next_run(size: int) -> None:
    stream, only = Stream(0, 0.0), message("only", finished=True)
    put(stream, 0, only, size)
    assert put(stream, 0, only, size) is Verdict.REPEAT
    stream.take(0)
    remembered = put(stream, 0, only, size)
    assert remembered is (Verdict.REPEAT if size <= SMALL else Verdict.NEW)
    if remembered is Verdict.REPEAT:
        assert put(stream, 0, message("only", finished=True), size) is Verdict.NEW


def test_a_taken_message_is_kept_alive_by_nothing_but_an_only_one() -> None:
    stream, large = Stream(0, 0.0), message("large", finished=True)
    put(stream, 0, large, SMALL + 1)
    stream.take(0)
    assert stream.writing.only is None
    assert not stream.writing.held


def test_take_many_stops_at_a_gap_at_the_limit_and_at_the_end_of_the_run() -> None:
    stream = Stream(0, 0.0)
    for number in (0, 1, 2, 4, 5):
        put(stream, number, message(number))
    assert [item[0]["data"] for item in stream.take_many(0, 2)] == [0, 1]
    assert [item[0]["data"] for item in stream.take_many(2, 9)] == [2]
    put(stream, 3, message(3))
    put(stream, 6, message(6, finished=True))
    put(stream, 0, message("next run"))
    assert [item[0]["data"] for item in stream.take_many(3, 9)] == [3, 4, 5, 6]
    assert [item[0]["data"] for item in stream.take_many(0, 9)] == ["next run"]


def test_a_run_whose_beginning_was_forgotten_goes_on() -> None:
    run = Run(500)
    assert run.has(499)
    assert not run.has(500)
