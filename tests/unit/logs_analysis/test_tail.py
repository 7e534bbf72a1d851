"""Following a log as it grows, through rotation by rename and by copy-truncate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stagewire_logs.filters import Filter
from stagewire_logs.follow import Follower
from stagewire_logs.tail import Tail
from stagewire_logs.testing import encode, request_run

LINES = [
    b'{"timestamp":"2026-12-01T12:00:0%d.000000Z","level":"info","event":"e%d","pipeline":"p"}\n' % (n, n)
    for n in range(9)
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "app.log"


@pytest.fixture
def follower(path: Path) -> Iterator[Follower]:
    path.write_bytes(b"".join(LINES[:5]))
    made = Follower(path, 2)
    yield made
    made.close()


def new(follower: Follower) -> bytes:
    return b"".join(follower.read())


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_lg5_the_last_lines_come_first_then_what_is_added(follower: Follower, path: Path) -> None:
    assert new(follower) == LINES[3] + LINES[4]
    assert new(follower) == b""
    append(path, LINES[5])
    assert new(follower) == LINES[5]


@pytest.mark.parametrize("last", [0, 1, 5, 100, None])
def test_lg5_any_number_of_last_lines(path: Path, last: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewire_logs.follow.READ", 50)
    path.write_bytes(b"".join(LINES))
    made = Follower(path, last)
    assert new(made) == b"".join(LINES if last is None else LINES[len(LINES) - last :] if last < 9 else LINES)
    made.close()


def test_lg5_half_a_line_waits_for_its_end(follower: Follower, path: Path) -> None:
    new(follower)
    append(path, LINES[5][:20])
    assert new(follower) == b""
    append(path, LINES[5][20:] + LINES[6])
    assert new(follower) == LINES[5] + LINES[6]


def test_lg5_rotation_by_rename_loses_nothing(follower: Follower, path: Path) -> None:
    new(follower)
    append(path, LINES[5])
    old = path.rename(path.with_suffix(".log.1"))
    append(old, LINES[6])
    assert new(follower) == LINES[5] + LINES[6], "nothing is at the path, and the old file is still written to"
    append(old, LINES[7])
    path.write_bytes(LINES[8])
    assert new(follower) == LINES[7] + LINES[8]
    append(path, LINES[0])
    assert new(follower) == LINES[0]


def test_lg5_rotation_by_copy_truncate(follower: Follower, path: Path) -> None:
    new(follower)
    path.with_suffix(".log.1").write_bytes(path.read_bytes())
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(LINES[6])
    assert new(follower) == LINES[6]


def test_lg5_a_file_may_come_later(path: Path) -> None:
    made = Follower(path)
    assert new(made) == b""
    path.write_bytes(LINES[0])
    assert new(made) == LINES[0]
    made.close()


def test_lg5_lines_are_readable_and_filtered(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(
        b"Killed\n\x1b[31m\n" + b"".join(encode(request_run(1, 1))) + b'{"level":40,"time":0,"msg":"hi\\u001b[1m"}\n'
    )
    for keep, wanted in (
        (Filter(), ["Killed", "request.ended speech r-0000000 seconds=0.", "warning  hi [1m\n"]),
        (Filter(events=("request.e*",)), ["11:06:40.", "request.ended speech r-0000000 seconds=0."]),
    ):
        tail = Tail([str(path)], keep, last=100, raw=False)
        assert tail.step()
        assert not tail.step()
        tail.close()
        out = capsys.readouterr().out
        for text in wanted:
            assert text in out
        assert "\x1b" not in out, "a log cannot steer the terminal"
        assert ("Killed" in out) == keep.open


def test_lg5_raw_lines_are_passed_on_as_they_are(path: Path, logs: Any) -> None:
    path.write_bytes(b"".join(LINES))
    assert logs("tail", "--no-follow", "--raw", "-n", "2", path) == (0, (LINES[7] + LINES[8]).decode(), "")
    assert logs("tail", "--no-follow", path.with_name("none.log"))[0] == 1
    assert logs("tail")[0] == 2
