"""One request or session as a timeline (LG-4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stagewire_logs.testing import RequestFaults, encode, request_run


def test_lg4_everything_that_happened_to_a_request_in_order(write: Any, logs: Any) -> None:
    events = [event for event in request_run(1, 30) if event.get("request_id") == "r-0000007"]
    lines = list(encode(request_run(1, 30)))
    path = write(lines[:150], "b.log")
    earlier = write(lines[150:], "a.log")
    found = json.loads(logs("request", "r-0000007", "--format", "json", earlier, path)[1])
    assert [entry["event"] for entry in found["entries"]] == [event["event"] for event in events]
    assert (found["schema"], found["id"]) == ("stagewire.logs.timeline/1", "r-0000007")
    assert found["first"] == events[0]["timestamp"]
    assert found["seconds"] == pytest.approx(events[-1]["seconds"], abs=1e-6)
    first = found["entries"][0]
    assert lines[first["line"] - 1 + (150 if first["file"].endswith("a.log") else 0)] == next(encode(events[:1]))


def test_lg4_silences_are_marked(write: Any, logs: Any) -> None:
    path = write(request_run(1, 5))
    events = [event for event in request_run(1, 5) if event.get("request_id") == "r-0000003"]
    longest = max(event["seconds"] for event in events if event["event"] == "stage.ended")
    found = json.loads(logs("request", "r-0000003", "--gap", longest - 0.001, "--format", "json", path)[1])
    assert [entry["gap"] for entry in found["entries"] if entry["gap"] is not None] == [
        pytest.approx(longest, abs=1e-5)
    ]
    out = logs("request", "r-0000003", "--gap", longest - 0.001, path)[1]
    assert "of silence" in out
    assert max(map(len, out.splitlines())) <= 80


def test_lg4_a_request_that_failed_ends_with_its_cause(write: Any, logs: Any) -> None:
    path = write(request_run(1, 5, RequestFaults(failed=frozenset({2}))))
    out = logs("request", "r-0000002", path)[1]
    assert "request.failed" in out
    assert "token 2 is out of range" in " ".join(out.split())


@pytest.mark.parametrize(
    "line",
    [
        b'{"event":"x","session_id":"s-1"}',
        b'{"msg":"x","time":1,"trace":{"id":"s-1"}}',
        b'{"msg":"x","time":1,"traceId":"s-1"}',
        b'{"msg":"x","time":1,"spanContext":{"traceId":"s-1"}}',
        b'{"message":"x","trace_id":"s-1","level":"info"}',
    ],
)
def test_lg4_ids_are_found_flat_and_nested(line: bytes, write: Any, logs: Any) -> None:
    path = write([b'{"event":"y","session_id":"s-10"}\n', line + b"\n", b"s-1\n"])
    found = json.loads(logs("session", "s-1", "--format", "json", path)[1])
    assert [entry["line"] for entry in found["entries"]] == [2]


def test_lg4_an_id_that_is_not_there_is_said(write: Any, logs: Any) -> None:
    status, out, err = logs("request", "r-x", write(request_run(1, 5)))
    assert (status, out) == (2, "")
    assert "nothing was found of 'r-x'" in err
