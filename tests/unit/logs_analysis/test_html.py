"""The HTML report stands by itself (LG-5)."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from stagewire_logs.testing import CspFaults, RequestFaults, csp_run, damaged, encode, request_run

VOID = {"meta", "rect", "line", "br"}


class Outline(HTMLParser):
    """Reads a page, and fails where its elements are not nested as they must be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[tuple[str, str | None]] = []
        self.names: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [pair for pair in attrs if pair[0] in {"src", "href", "srcset", "data", "action", "onload"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)


@pytest.fixture
def report(write: Any, logs: Any, tmp_path: Path) -> str:
    requests = write(request_run(1, 60, RequestFaults(failed=frozenset({3}), hung=frozenset({5}), lost_lease=9)))
    csp = write(csp_run(1, 60, CspFaults(leak_t=3, stall=(20, 31))), "csp.log")
    bad = write([damaged(1, encode(request_run(1, 30))).data], "bad.log")
    status, out, err = logs("report", "-o", tmp_path / "report.html", requests, csp, bad)
    assert (status, out, err) == (0, "", "")
    return (tmp_path / "report.html").read_text()


def test_lg5_the_report_is_one_file_that_asks_for_nothing(report: str) -> None:
    outline = Outline(report)
    assert outline.links == []
    assert not re.search(r"url\(|@import|https?:", report)
    assert "default-src 'none'" in report
    assert "script" not in outline.names


def test_lg5_the_slowest_stage_and_the_first_error_come_first(report: str) -> None:
    order = [
        report.index(text) for text in ("first error", "slowest stage", "<h2>Findings", "<h2>Over time", "<h2>CSP")
    ]
    assert order == sorted(order)
    assert "token 3 is out of range" in report[order[0] : order[1]]
    assert "audio" in report[order[1] : order[2]]


def test_lg5_what_a_log_says_is_never_markup(write: Any, logs: Any, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&<"
    line = {
        "timestamp": "2026-12-01T12:00:00.000000Z",
        "level": "error",
        "event": evil,
        "pipeline": evil,
        "cause": evil,
    }
    ended = line | {"level": "info", "event": "stage.ended", "stage": evil, "seconds": 1.5}
    logs("report", "-o", tmp_path / "r.html", write([line, ended, line], "<b>.log"))
    page = (tmp_path / "r.html").read_text()
    assert "script" not in Outline(page).names
    assert "&lt;script&gt;" in page


def test_lg5_a_clean_log_says_so(write: Any, logs: Any, tmp_path: Path) -> None:
    logs("report", "-o", tmp_path / "r.html", write(request_run(1, 30)))
    page = (tmp_path / "r.html").read_text()
    assert "No findings" in page
    assert "first error" not in page


def test_lg5_a_report_that_cannot_be_written_is_an_error(write: Any, logs: Any, tmp_path: Path) -> None:
    status, _, err = logs("report", "-o", tmp_path / "none" / "r.html", write(request_run(1, 3)))
    assert status == 1
    assert "No such file or directory" in err
