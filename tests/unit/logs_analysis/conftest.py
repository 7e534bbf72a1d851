from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from stagewire.cli import invoke
from stagewire_logs.filters import Filter
from stagewire_logs.inputs import Input
from stagewire_logs.results import Summary
from stagewire_logs.run import analyse
from stagewire_logs.sources import part_of
from stagewire_logs.testing import Event, encode

Analyse = Callable[..., Summary]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write lines, or events, into a file."""

    def write(lines: Iterable[bytes | Event], name: str = "app.log") -> Path:
        path = tmp_path / name
        data = [line if isinstance(line, bytes) else b"".join(encode([line])) for line in lines]
        path.write_bytes(b"".join(data))
        return path

    return write


@pytest.fixture
def summarise(write: Callable[..., Path]) -> Analyse:
    """Analyse lines, or events, in this process."""

    def summarise(lines: Iterable[bytes | Event], keep: Filter | None = None, name: str = "app.log") -> Summary:
        return analyse(Input([part_of(str(write(lines, name)))], [], keep or Filter()), processes=1)

    return summarise


@pytest.fixture
def logs(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run ``stagewire logs`` in this process."""

    def logs(*arguments: Any) -> tuple[int, str, str]:
        status = invoke(["logs", *map(str, arguments)])
        return (status, *capsys.readouterr())

    return logs
