"""configs/read-aloud.yaml: real speech, through phonemes."""

from __future__ import annotations

import importlib.util
import os
import wave
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Program

missing = importlib.util.find_spec("espeakng_loader") is None
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        missing and os.environ.get("CI") != "true", reason="needs eSpeak NG: pip install 'stagewire[speech]'"
    ),
]


def test_a_text_is_spoken(program: Program, tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.write_text("Hello, world. How are you today?\n\nThe third sentence is the last one.")
    run = program.run("read-aloud.yaml", source)
    assert run.code == 0, run.stderr
    assert [line[:2] + line[-1] for line in (run.output / "phonemes.txt").read_text().splitlines()] == [
        "[[.",
        "[[?",
        "[[.",
    ]
    with wave.open(str(run.output / "speech.wav"), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 22_050)
        sound = array("h", file.readframes(file.getnframes()))
    assert 3 < len(sound) / 22_050 < 10
    tenths = [max(map(abs, sound[at : at + 2_205])) for at in range(0, len(sound), 2_205)]
    assert sum(loudest > 2_000 for loudest in tenths) > len(tenths) / 2


def test_no_text_is_an_empty_file_that_plays(program: Program, tmp_path: Path) -> None:
    source = tmp_path / "text.txt"
    source.touch()
    run = program.run("read-aloud.yaml", source)
    assert run.code == 0, run.stderr
    with wave.open(str(run.output / "speech.wav"), "rb") as file:
        assert (file.getframerate(), file.getnframes()) == (22_050, 0)
