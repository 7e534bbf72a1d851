"""Broken input is normal: counted, named, and nothing stops the run (LG-6)."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagewire_logs import sources
from stagewire_logs.damage import MEANING
from stagewire_logs.filters import Filter
from stagewire_logs.inputs import Input
from stagewire_logs.reading import Reader
from stagewire_logs.run import analyse
from stagewire_logs.sources import part_of
from stagewire_logs.summary import Analysis
from stagewire_logs.tally import Tally
from stagewire_logs.testing import damaged, encode, request_run

LINE = b'{"timestamp":"2026-12-01T12:00:00.000000Z","level":"info","event":"app.started","pipeline":"p","version":"1"}'


@pytest.mark.parametrize("seed", range(3))
def test_lg6_the_counts_are_exactly_those_of_the_generator(seed: int, summarise: Any) -> None:
    made = damaged(seed, encode(request_run(seed, 120)))
    found = summarise([made.data])
    assert {each.kind: each.count for each in found.damage} == made.damage
    assert (found.lines, found.records) == (made.lines, made.records)
    assert set(made.damage) == set(MEANING) - {"unreadable"}, "the generator knows every kind"


def test_lg6_lines_are_numbered_as_an_editor_does(summarise: Any) -> None:
    found = summarise([LINE + b"\n", b"\n", b"oops\n", LINE + b"\n", b'{"half\n'])
    assert {each.kind: each.line for each in found.damage} == {"plain_text": 3, "half_written": 5}
    assert all(each.file.endswith("app.log") for each in found.damage)


@pytest.mark.parametrize(
    ("line", "kind", "records"),
    [
        (LINE[:40], "half_written", 0),
        (LINE[40:], "half_written", 0),
        (LINE[:50] + LINE, "half_written", 1),
        (LINE.replace(b":", b"=", 1), "malformed", 0),
        (b"[" * 100_000, "malformed", 0),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "malformed", 0),
        (b"\0" * 4096, "nul", 0),
        (b"\0" * 4096 + LINE, "nul", 1),
        (LINE.replace(b"app", b"\xc3\x28"), "encoding", 1),
        (b"3.14", "no_object", 0),
        (b"{}", "no_time", 1),
    ],
)
def test_lg6_each_kind_has_its_name(line: bytes, kind: str, records: int, summarise: Any) -> None:
    found = summarise([line, b"\n"])
    assert {each.kind: each.count for each in found.damage} == {kind: 1}
    assert (found.lines, found.records) == (1, records)


def test_lg6_a_byte_order_mark_and_windows_line_ends_are_no_damage(summarise: Any) -> None:
    found = summarise([b"\xef\xbb\xbf" + LINE + b"\r\n", LINE + b"\r\n", b"\r\n"])
    assert (found.records, found.damage) == (2, [])


def test_lg6_a_step_back_in_time_is_counted_and_small_disorder_is_not(summarise: Any) -> None:
    stamps = ["12:00:05.000000", "12:00:04.500000", "11:00:00.000000", "12:00:06.000000"]
    found = summarise([LINE.replace(b"12:00:00.000000", stamp.encode()) + b"\n" for stamp in stamps])
    (step,) = found.damage
    assert (step.kind, step.count, step.line) == ("clock_back", 1, 3)
    assert step.sample.startswith("3604.500 s")
    assert (found.first, found.last) == ("2026-12-01T11:00:00.000000Z", "2026-12-01T12:00:06.000000Z")


def test_lg6_a_gzip_file_that_ends_early_is_read_as_far_as_it_goes(write: Any) -> None:
    whole = b"".join(encode(request_run(1, 200)))
    path = write([gzip.compress(whole)[:-2000]], "app.log.gz")
    found = analyse(Input([part_of(str(path))], [], Filter()))
    assert found.records > 500
    assert "end-of-stream" in (found.sources[0].problem or "")
    assert "unreadable" in {each.kind for each in found.damage}


def test_lg6_memory_is_bounded_whatever_a_line_is(summarise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "OVERSIZED", 3 * sources.READ)
    found = summarise([b"x" * (5 * sources.READ), b"\n", LINE, b"\n"])
    assert {each.kind: (each.count, each.line) for each in found.damage} == {"oversized": (1, 1)}
    assert (found.lines, found.records) == (2, 1)


SNIPPETS = st.sampled_from([b"\\", b'"', b"{", b"}", b"\0", b"1e999", b"\xff"])


@st.composite
def broken_lines(draw: st.DrawFn) -> bytes:
    line = bytearray(LINE)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(line)))
        if draw(st.booleans()):
            line[at : at + draw(st.integers(0, 20))] = b""
        else:
            line[at:at] = draw(st.binary(max_size=8) | SNIPPETS)
    return bytes(line).replace(b"\n", b"")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["timestamp", "time", "ts", "level", "severityNumber", "event", "msg", "message", "record", "text", "stage",
     "seconds", "pipeline", "exception", "err", "request_id", "attributes", "extra", "t", "q", "state", "lease_id"]
)  # fmt: skip
EVENTS = st.sampled_from(
    ["csp.monitor", "csp.finished", "csp.started", "stage.ended", "request.ended", "request.admitted", "session.opened",
     "session.finalized", "transport.stats", "lease.lost", "key.left_behind", "app.finished"]
)  # fmt: skip
objects = st.builds(
    lambda fields, event: fields | ({"event": event} if event else {}),
    st.dictionaries(NAMES, JSON, max_size=8),
    st.none() | EVENTS,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(broken_lines() | objects.map(msgspec.json.encode), max_size=8))
def test_lg6_no_line_whatever_it_holds_stops_the_reading(lines: list[bytes]) -> None:
    block = b"\n".join(lines)
    reader, tally, analysis = Reader("fuzz"), Tally(), Analysis()
    tally.damage, tally.foreign = reader.damage, reader.foreign
    if block:
        tally.add(reader.read(block), "fuzz", 0)
    analysis.add("fuzz", tally)
    msgspec.json.encode(analysis.result())


@given(st.integers(2, len(LINE) - 1))
def test_lg6_wherever_a_line_is_cut_it_is_half_written(cut: int) -> None:
    reader = Reader("cut")
    assert not reader.read(LINE[:cut] + b"\n").lines
    assert {kind: each.count for kind, each in reader.damage.kinds.items()} == {"half_written": 1}
