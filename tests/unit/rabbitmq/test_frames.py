"""What travels: chunks, marks, batches and grants survive the way, and damage is an error of ours, never another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire import ChunkKey, CodecError, Message, Permanent
from stagewire_rabbitmq.frames import encode_message, join_entries, open_frame, pack_entry
from stagewire_rabbitmq.grants import open_told, pack_grants, pack_handled
from stagewire_rabbitmq.letters import open_batch, pack_batch
from stagewire_rabbitmq.options import MESSAGE_LIMIT
from stagewire_rabbitmq.runs import Grant

NUMBERS = st.integers(0, 2**62)
STAGES = st.one_of(st.text(max_size=8), st.integers(0, 1_000))
DATA = st.one_of(st.none(), st.integers(-5, 5), st.text(max_size=9), st.binary(max_size=99), st.lists(st.booleans()))
CHUNKS = st.tuples(st.text(max_size=8), STAGES, NUMBERS, NUMBERS, DATA, st.booleans())
BATCHES = st.lists(st.tuples(DATA, st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)), min_size=1)


def body_of(chunks: list[Any]) -> bytes:
    entries = []
    for request, stage, chunk, run, data, finished in chunks:
        key = ChunkKey(request, stage, chunk)
        entries.append(pack_entry(key, run, encode_message(key, {"data": data, "finished": finished})))
    return join_entries(entries, 12.5)


@given(st.lists(CHUNKS, max_size=5))
def test_tr9_chunks_joined_into_one_message_come_out_as_they_were(chunks: list[Any]) -> None:
    arrivals, faults = open_frame(body_of(chunks))
    assert not faults
    assert [(a.name[1], a.name[0], a.chunk, a.run) for a in arrivals] == [chunk[:4] for chunk in chunks]
    assert [a.message for a in arrivals] == [{"data": chunk[4], "finished": chunk[5]} for chunk in chunks]
    assert all(a.sent_at == 12.5 and a.size > 0 for a in arrivals)


def test_tr5_a_mark_is_an_entry_without_a_message() -> None:
    (arrival,), faults = open_frame(join_entries([pack_entry(ChunkKey("r", "a", 7), 3, b"")], 0.0))
    assert (arrival.message, arrival.chunk, arrival.run, faults) == (None, 7, 3, [])


@given(st.lists(CHUNKS, min_size=1, max_size=3), st.data())
def test_tr6_a_damaged_frame_is_an_error_of_ours(chunks: list[Any], data: st.DataObject) -> None:
    body = bytearray(body_of(chunks))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(body[: data.draw(st.integers(0, len(body)))])
    for damaged in (bytes(body), cut):
        try:
            open_frame(damaged)
        except CodecError:
            continue


@given(st.binary(max_size=200))
def test_tr6_foreign_bytes_are_an_error_of_ours(body: bytes) -> None:
    for read in (open_frame, open_batch, open_told):
        try:
            read(body)
        except CodecError:
            continue


def test_tr6_one_undecodable_chunk_ends_its_request_and_touches_no_other() -> None:
    key = ChunkKey("good", "a", 0)
    good = pack_entry(key, 1, encode_message(key, {"data": 1, "finished": False}))
    bad = pack_entry(ChunkKey("bad", "a", 4), 2, b"nonsense")
    (first, second), faults = open_frame(join_entries([good, bad], 0.0))
    assert first.message == {"data": 1, "finished": False}
    assert second.message is not None
    assert second.message["finished"]
    assert "chunk 4 of request 'bad' cannot be decoded" in second.message["error"]
    assert len(faults) == 1


def test_a_newer_version_is_named() -> None:
    body = b"\x09" + join_entries([], 0.0)[1:]
    with pytest.raises(CodecError, match="version 9"):
        open_frame(body)
    with pytest.raises(CodecError, match="version 9"):
        open_batch(b"\x09" + pack_batch([Message(1)], 0.0)[1:])


def test_tr10_what_is_too_large_for_a_message_is_refused_with_the_remedy() -> None:
    large = bytes(MESSAGE_LIMIT)
    with pytest.raises(Permanent, match="claim-check"):
        encode_message(ChunkKey("r", "a", 0), {"data": large, "finished": False})
    with pytest.raises(Permanent, match="claim-check"):
        pack_batch([Message(large)], 0.0)
    with pytest.raises(Permanent, match="chunk r_a_0 cannot be encoded"):
        encode_message(ChunkKey("r", "a", 0), {"data": object(), "finished": False})
    with pytest.raises(Permanent, match="cannot be encoded"):
        pack_batch([Message(object())], 0.0)


@given(BATCHES, NUMBERS)
def test_tr1_a_batch_comes_out_as_it_was(messages: list[Any], number: int) -> None:
    batch = open_batch(pack_batch([Message(payload, headers) for payload, headers in messages], 3.5, number))
    assert [(each.payload, each.headers) for each in batch.messages] == messages
    assert (batch.sent_at, batch.number) == (3.5, number)


@given(st.lists(st.builds(Grant, st.sampled_from("xy"), st.tuples(STAGES, st.text(max_size=4)), NUMBERS, NUMBERS)))
def test_tr5_of_several_grants_for_a_run_the_last_counts(grants: list[Grant]) -> None:
    told = {to: open_told(body) for to, body in pack_grants("q", grants).items()}
    assert all(each.queue == "q" for each in told.values())
    heard = {(to, (stage, request), run): base for to, each in told.items() for stage, request, run, base in each.bases}
    assert heard == {(grant.to, grant.name, grant.run): grant.base for grant in grants}


def test_tr5_handled_batches_are_told_by_their_numbers() -> None:
    assert list(open_told(pack_handled("q", [4, 5])).handled) == [4, 5]
