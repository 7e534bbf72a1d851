"""configs/quickstart.yaml: whatever text goes in, its sound says the same."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Program, Run

pytestmark = pytest.mark.integration

CONFIG = "quickstart.yaml"
ROOT = Path(__file__).resolve().parents[2]

Listen = Callable[[Path], str]


def plain(text: str) -> str:
    return " ".join(text.upper().split())


def check(run: Run, listen: Listen, said: str) -> None:
    assert (run.code, listen(run.output / "tone.wav")) == (0, said), run.stderr


def sentences(run: Run) -> list[str]:
    return (run.output / "sentences.txt").read_text("utf-8").splitlines()


def wait_for_sound(path: Path, more_than: int, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not (path.exists() and path.stat().st_size > more_than):
        assert time.monotonic() < deadline, f"no sound in {path} after {seconds} s"
        time.sleep(0.01)


def test_the_shipped_text(program: Program, listen: Listen) -> None:
    source = ROOT / "configs" / "quickstart.txt"
    run = program.run(CONFIG, source)
    check(run, listen, plain(source.read_text()))
    assert len(sentences(run)) == 5
    assert " ".join(sentences(run)) == " ".join(source.read_text().split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("Five words are sent here", "FIVE WORDS ARE SENT HERE", id="5-words"),
        pytest.param("", "", id="empty"),
        pytest.param("\n \r\n", "", id="blank"),
        pytest.param("\ufeffOne line.\r\nAnd two.\r\n\r\nEnd\r\n", "ONE LINE. AND TWO. END", id="crlf-and-bom"),
        pytest.param("Wow 🎉!", "WOW !", id="emoji"),
        pytest.param("🎉🎉🎉", "", id="only-emoji"),
        pytest.param("“Café” – Ærø, über Straße…", '"CAFÉ" - R, UBER STRASSE...', id="accents"),
        pytest.param("!\"$&'()+,-./:;=?@_ 0123456789", "!\"$&'()+,-./:;=?@_ 0123456789", id="all-signs"),
        pytest.param(
            "the quick brown fox jumps over the lazy dog", "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG", id="a-z"
        ),
    ],
)
def test_any_text(program: Program, listen: Listen, tmp_path: Path, text: str, said: str) -> None:
    source = tmp_path / "text.txt"
    source.write_bytes(text.encode())
    check(program.run(CONFIG, source), listen, said)


def test_what_cannot_be_sent_is_told_once(program: Program, tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.write_text("Wow 🎉! And 🎉 # again.", "utf-8")
    run = program.run(CONFIG, source)
    warnings = [line for line in run.stderr.splitlines() if "morse.skipped" in line]
    assert (run.code, len(warnings)) == (0, 1)


def test_a_chapter_sounds_long_and_takes_little_memory(
    program: Program, listen: Listen, tmp_path: Path, write_text: Callable[[int], str]
) -> None:
    source = tmp_path / "chapter.txt"
    source.write_text(write_text(30_000))
    run = program.run(CONFIG, source)
    check(run, listen, plain(source.read_text()))
    assert (run.output / "tone.wav").stat().st_size > 200e6
    assert run.peak_mib < 150


def test_sound_is_written_before_the_last_sentence_was_read(program: Program, listen: Listen, tmp_path: Path) -> None:
    fifo = tmp_path / "text.fifo"
    os.mkfifo(fifo)
    with program.started(CONFIG, fifo) as finish:
        with os.fdopen(os.open(fifo, os.O_RDWR), "wb", buffering=0) as text:  # open at once, reader or not
            text.write(b"The first sentence has ended. The last one")
            wait_for_sound(program.output / "tone.wav", more_than=65_536)
            text.write(b" comes later.")
        check(finish(), listen, "THE FIRST SENTENCE HAS ENDED. THE LAST ONE COMES LATER.")


def test_a_pipe_on_standard_input(program: Program, listen: Listen) -> None:
    with program.started(CONFIG, "-", stdin=subprocess.PIPE) as finish:
        process = program.process
        assert process.stdin is not None
        with process.stdin as text:
            text.write(b"Piped in. ")
            text.flush()
            wait_for_sound(program.output / "tone.wav", more_than=1_000)
            text.write("It’s été.".encode())
        check(finish(), listen, "PIPED IN. IT'S ÉTÉ.")


def test_a_text_that_is_not_utf8_fails_with_stage_place_and_remedy(program: Program, tmp_path: Path) -> None:
    source = tmp_path / "latin1.txt"
    source.write_bytes(b"All is well. Caf\xe9.")
    run = program.run(CONFIG, source)
    told = run.stdout + run.stderr
    assert run.code == 1
    assert all(word in told for word in ("sentences", "byte 16", "iconv"))
