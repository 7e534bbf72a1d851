"""configs/fan-out.yaml: two branches of one source, joined row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Program, Run

pytestmark = pytest.mark.integration

CONFIG = "fan-out.yaml"


def table(run: Run) -> list[dict[str, Any]]:
    assert run.code == 0, run.stderr
    return [json.loads(line) for line in (run.output / "table.jsonl").read_text("utf-8").splitlines()]


def test_each_row_joins_what_both_branches_made_of_one_sentence(program: Program, tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.write_text("Paris. 🎉 Tea at 5?\n\n🎉🎉\n\ne", "utf-8")
    assert table(program.run(CONFIG, source)) == [
        {"sentence": 1, "words": 1, "characters": 6, "dits": 43 + 3 + 17},
        {"sentence": 2, "words": 4, "characters": 11, "dits": 3 + 3 + 1 + 3 + 5 + 7 + 5 + 3 + 3 + 7 + 9 + 3 + 15},
        {"sentence": 3, "words": 1, "characters": 2, "dits": 0},
        {"sentence": 4, "words": 1, "characters": 1, "dits": 1},
    ]


def test_an_empty_text_is_an_empty_table(program: Program, tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.touch()
    assert table(program.run(CONFIG, source)) == []


@pytest.mark.slow
def test_a_book_takes_little_memory(program: Program, tmp_path: Path, write_text: Callable[[int], str]) -> None:
    source = tmp_path / "book.txt"
    text = write_text(3_000_000)
    source.write_text(text)
    run = program.run(CONFIG, source)
    rows = table(run)
    assert [row["sentence"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) > 20_000
    assert sum(row["words"] for row in rows) == len(text.split())
    assert run.peak_mib < 150
