"""The write-session report (LG-3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stagewire_logs.testing import Event, Stopwatch

PIPELINE = "files"


def sessions(faults: dict[int, str]) -> Iterator[Event]:
    """Write ten files, and let some go wrong: ``degraded``, ``failed``, ``reaped`` or ``hung``."""
    watch = Stopwatch()

    def event(level: str, name: str, **fields: Any) -> Event:
        watch.forward(0.5)
        return watch.event(level, name, PIPELINE, **fields)

    yield event("info", "app.started", version="1", kind="write-session")
    for number in range(10):
        ids = {"session_id": f"s-{number}", "path": f"/data/{number}"}
        fault = faults.get(number)
        yield event("debug", "session.opened", **ids, node="n1")
        if fault == "hung":
            continue
        if fault == "reaped":
            yield event("warning", "session.reaped", **ids, idle=60.0)
            continue
        if fault == "degraded":
            yield event("warning", "session.degraded", **ids, cause="kv_put: connection refused")
        if fault == "failed":
            yield event("warning", "session.failed", **ids, cause="no space left on device")
            yield event("info", "session.aborted", **ids)
            continue
        yield event("info", "session.finalized", **ids, bytes=1000, kv_bytes=600, raw_bytes=400, retries=1)
        yield event("info", "session.closed", **ids, frames=4, duplicates=2)
    yield event("info", "app.finished", seconds=9.0, outputs=0, failures=0, stopped=False)


def test_lg3_bytes_by_path_retries_and_repeats(summarise: Any) -> None:
    found = summarise(sessions({}))
    (report,) = found.writes
    assert report.bytes == {"kv": 6000, "raw": 4000}
    assert (report.retries, report.duplicates) == (10, 20)
    assert report.sessions == {"opened": 10, "finalized": 10, "open": 0}
    assert report.seconds.p50 == pytest.approx(0.5, rel=0.01)
    assert found.findings == [], "a clean run has no finding"


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ("degraded", "session_degraded", "kv_put: connection refused"),
        ("failed", "session_failed", "no space left on device"),
        ("reaped", "session_failed", "reaped"),
        ("hung", "session_hung", "/data/4"),
    ],
)
def test_lg3_what_goes_wrong_is_found(fault: str, kind: str, text: str, summarise: Any) -> None:
    found = summarise(sessions({4: fault}))
    (finding,) = found.findings
    assert finding.kind == kind
    assert "s-4" in finding.text
    assert text in finding.text
    assert [session.session_id for session in found.writes[0].unusual] == ["s-4"]


def test_lg3_degradations_are_counted_by_cause_and_printed(write: Any, logs: Any) -> None:
    path = write(sessions({1: "degraded", 2: "degraded", 5: "failed"}))
    status, out, _ = logs("writes", path)
    assert status == 0
    for said in ("2 times kv_put: connection refused", "5.3 KiB by kv", "1 failed", "9 finalized", "session_failed"):
        assert said in " ".join(out.split()), said


def test_lg3_leases_and_keys(summarise: Any) -> None:
    watch = Stopwatch()
    found = summarise(
        [
            watch.event("warning", "lease.keepalive_failed", PIPELINE, lease_id="l", failures=1, cause="timeout"),
            watch.event("error", "lease.lost", PIPELINE, lease_id="l", cause="gone"),
            watch.event("warning", "key.left_behind", PIPELINE, keys=7),
        ]
    )
    (report,) = found.writes
    assert (report.keepalive_failures, report.leases_lost, report.pending_keys) == (1, 1, 7)
    assert {finding.kind for finding in found.findings} == {"lease_lost", "lease_keepalive_failed", "key_left_behind"}


def test_lg3_a_log_without_sessions_says_so(write: Any, logs: Any) -> None:
    assert "no write session and no lease" in logs("writes", write([Stopwatch().event("info", "x", "p")]))[1]
