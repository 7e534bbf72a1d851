"""``stagewire logs`` from the outside: what it prints, and its exit status (LG-5, LG-6)."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from stagewire_logs import run
from stagewire_logs.results import SCHEMA, json_schema
from stagewire_logs.scan import scan
from stagewire_logs.testing import CspFaults, RequestFaults, csp_run, damaged, encode, request_run

FAULTS = RequestFaults(failed=frozenset({3}), hung=frozenset({5}))


@pytest.fixture
def log(write: Any) -> Path:
    path: Path = write(request_run(1, 60, FAULTS))
    return path


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(data)), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)


def test_lg1_the_summary_says_what_a_person_asks(log: Path, logs: Any) -> None:
    status, out, err = logs("summary", log)
    assert (status, err) == (0, "")
    for text in ("request_failed", "request_hung", "end to end", "audio", "gather->tokens", "records over time"):
        assert text in out
    assert max(map(len, out.splitlines())) <= 80


def test_lg5_json_is_valid_under_its_versioned_schema(log: Path, write: Any, logs: Any) -> None:
    csp = write(csp_run(1, 60, CspFaults(leak_t=3, stall=(20, 30))), "csp.log")
    bad = write([damaged(1, encode(request_run(1, 30))).data], "bad.log")
    status, out, _ = logs("summary", "--format", "json", log, csp, bad)
    found = json.loads(out)
    assert (status, found["schema"]) == (0, SCHEMA)
    jsonschema.validate(found, json_schema())
    assert json.loads(logs("schema")[1]) == json_schema()


def test_lg5_the_published_schema_is_current() -> None:
    published = Path(__file__).parents[3] / "docs" / "logs.schema.json"
    assert json.loads(published.read_text()) == json_schema(), "run `stagewire logs schema > docs/logs.schema.json`"


def test_lg6_standard_input_and_compressed_files_are_read_alike(
    log: Path, write: Any, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    zstd = pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")
    data = log.read_bytes()
    packed = write([gzip.compress(data)], "a.gz")
    other = write([zstd.compress(data)], "a.zst")
    wanted = json.loads(logs("summary", "--format", "json", log)[1])["pipelines"]
    for path in (packed, other):
        assert json.loads(logs("summary", "--format", "json", path)[1])["pipelines"] == wanted
    for piped in (data, packed.read_bytes()):
        feed(monkeypatch, piped)
        assert json.loads(logs("summary", "--format", "json")[1])["pipelines"] == wanted


def test_lg6_rotated_files_are_read_oldest_first(write: Any, logs: Any) -> None:
    lines = list(encode(request_run(1, 60)))
    names = ("app.log.2.gz", "app.log.1", "app.log")
    for age, (name, part) in enumerate(zip(names, (lines[:200], lines[200:400], lines[400:]), strict=True)):
        path = write([gzip.compress(b"".join(part))] if name.endswith("gz") else part, name)
        os.utime(path, (age * 100, age * 100))
    write([b"not this one\n"], "app.log.bak")
    found = json.loads(logs("summary", "--rotated", "--format", "json", path)[1])
    assert [Path(source["name"]).name for source in found["sources"]] == list(names)
    assert (found["records"], found["findings"], found["damage"]) == (len(lines), [], [])


def test_lg7_a_file_split_among_processes_gives_the_same(
    write: Any, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stagewire_logs.scan.STRETCH", 20_000)
    monkeypatch.setattr("stagewire_logs.scan.ALONE", 20_000)
    faults = RequestFaults(failed=frozenset({30, 200}), hung=frozenset({120}))
    path = write([damaged(4, encode(request_run(4, 300, faults)), 0.02).data])
    alone, shared = (json.loads(logs("summary", "--format", "json", "--processes", n, path)[1]) for n in (1, 2))
    assert alone["records"] > 2000
    assert shared == alone


def test_lg6_exit_status_says_whether_anything_was_read(log: Path, write: Any, tmp_path: Path, logs: Any) -> None:
    assert logs("summary", write([b"no JSON\n"], "text.log"))[0] == 2
    missing = tmp_path / "missing.log"
    status, out, err = logs("summary", missing)
    assert status == 2
    assert f"{missing}: No such file or directory" in out
    assert "nothing was read" in err
    assert logs("summary", missing, log)[0] == 0, "one of them could be read"


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("findings", 1), ("errors", 0), ("failed>=1", 1), ("failed>1", 0), ("p99>1000", 0), ("p99>0.001", 1),
        ("request_hung", 1), ("csp_leak", 0), ("requests<10", 0), ("damage == 0", 1),
    ],
)  # fmt: skip
def test_lg5_fail_on_a_condition(condition: str, status: int, log: Path, logs: Any) -> None:
    found, _, err = logs("summary", "--fail-on", condition, log)
    assert found == status
    assert (f"--fail-on {condition}" in err) == bool(status)


@pytest.mark.parametrize("condition", ["finding", "errors >> 1", "p99>1.2.3", ""])
def test_lg5_a_condition_that_means_nothing_is_an_error(condition: str, log: Path, logs: Any) -> None:
    status, _, err = logs("summary", "--fail-on", condition, log)
    assert status == 2
    assert err.startswith("error: --fail-on")


def test_lg4_filters_by_time_level_event_and_id(log: Path, logs: Any) -> None:
    def records(*options: str) -> int:
        return int(json.loads(logs("summary", "--format", "json", *options, log)[1])["records"])

    assert records("--level", "warning") == 1
    assert records("--event", "stage.*", "--id", "r-0000007") == 7
    assert records("--id", "r-0000007", "--id", "r-0000008") == 18
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    middle = lines[len(lines) // 2]["timestamp"]
    earlier = sum(line["timestamp"] < middle for line in lines)
    assert records("--until", middle) == earlier
    assert records("--since", middle) == len(lines) - earlier
    assert logs("summary", "--since", "teatime", log)[0] == 2


def test_lg7_ctrl_c_prints_what_was_read_until_then(log: Path, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> Any:
        yield from real(*arguments, **options)
        raise KeyboardInterrupt

    real = scan
    monkeypatch.setattr(run, "scan", interrupted)
    status, out, _ = logs("summary", log)
    assert status == 130
    assert "interrupted: this is what was read until then" in out
    assert "end to end" in out


def test_lg2_the_csp_report(write: Any, log: Path, logs: Any) -> None:
    path = write(csp_run(1, 60, CspFaults(leak_t=3, stall=(20, 31))), "csp.log")
    status, out, _ = logs("csp", path)
    assert status == 0
    for text in ("csp_leak", "csp_stall", "1 t_slot since", "conserved, checked on 61 reports", "T stock", "of Q"):
        assert text in out
    assert "no CSP run in this log" in logs("csp", log)[1]
