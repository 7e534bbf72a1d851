"""Runs the program as a person would, and listens to what it wrote."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

# A process inherits the peak of the one it was forked from, so the program is started by a small one.
_MEASURE = """
import os, sys
report, *command = sys.argv[1:]
child = os.posix_spawn(command[0], command, os.environ)
_, status, usage = os.wait4(child, 0)
with open(report, "w") as file:
    file.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""

# The code of ITU-R M.1677-1 and the common additions, in the order of ASCII; written anew, not taken from the plugin.
_CODE = """
! -.-.--  " .-..-.  $ ...-..-  & .-...  ' .----.  ( -.--.  ) -.--.-  + .-.-.  , --..--  - -....-  . .-.-.-  / -..-.
0 -----  1 .----  2 ..---  3 ...--  4 ....-  5 .....  6 -....  7 --...  8 ---..  9 ----.
: ---...  ; -.-.-.  = -...-  ? ..--..  @ .--.-.  _ ..--.-
A .-  B -...  C -.-.  D -..  E .  F ..-.  G --.  H ....  I ..  J .---  K -.-  L .-..  M --
N -.  O ---  P .--.  Q --.-  R .-.  S ...  T -  U ..-  V ...-  W .--  X -..-  Y -.--  Z --..  É ..-..
"""
LETTERS = dict(zip(_CODE.split()[1::2], _CODE.split()[::2], strict=True))
_WORDS = "the wire a stage of sound when it begins and ends 20 kB in-between isn't (quite) long, water; morning"

WINDOW = 40  # samples over which loudness is taken: three waves of 600 Hz at 8 kHz
QUIET = 4_096  # an eighth of full scale


@dataclass(frozen=True)
class Run:
    """How the program ended."""

    code: int
    stdout: str
    stderr: str
    peak_mib: float
    output: Path


class Program:
    """``stagewire run`` on one configuration, as a child process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.output = folder / "out"
        self.process: subprocess.Popen[bytes]

    def run(self, config: str, source: str | Path, **options: Any) -> Run:
        with self.started(config, source, **options) as finish:
            return finish()

    @contextmanager
    def started(self, config: str, source: str | Path, **options: Any) -> Iterator[Callable[[], Run]]:
        """Start it; the value waits for its end and says how that was."""
        stdout, stderr, peak = (self._folder / name for name in ("stdout", "stderr", "peak"))
        command = [sys.executable, "-m", "stagewire", "run", str(ROOT / "configs" / config)]
        command += ["--input", str(source), "--output", str(self.output)]
        with stdout.open("wb") as out, stderr.open("wb") as err:
            process = self.process = _start(
                [sys.executable, "-S", "-c", _MEASURE, str(peak), *command], out, err, **options
            )

            def finish() -> Run:
                process.wait(100)
                mib = int(peak.read_text()) / 1024
                return Run(process.returncode, stdout.read_text(), stderr.read_text(), mib, self.output)

            with process:
                try:
                    yield finish
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)  # the program as well as the one that measures it


def _start(command: list[str], out: IO[bytes], err: IO[bytes], **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True, **options)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture(scope="session")
def listen() -> Callable[[Path], str]:
    """Turn a WAV file of Morse code back into text, by loudness alone; how long a dit lasts is found from the sound."""
    return lambda path: _read(_loud(path))


def _loud(path: Path) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Say for each window of the sound whether there is a tone in it."""
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8_000)
        assert path.stat().st_size == 44 + 2 * file.getnframes()
        parts = []
        while data := file.readframes(WINDOW * 50_000):
            samples = np.abs(np.frombuffer(data, "<i2").astype(np.int32))
            whole = np.pad(samples, (0, -len(samples) % WINDOW)).reshape(-1, WINDOW)
            parts.append(whole.max(axis=1) > QUIET)
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)


def _read(loud: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], loud, [False])).astype(np.int8)))
    if not len(edges):
        return ""
    marks, gaps = edges[1::2] - edges[::2], edges[2::2] - edges[1:-1:2]
    dit = marks[marks < 2 * marks.min()].mean()
    symbols = ["." if mark < 2 * dit else "-" for mark in marks]
    spaces = ["" if gap < 2 * dit else " " if gap < 5 * dit else " / " for gap in gaps]
    code = "".join(symbol + space for symbol, space in zip(symbols, [*spaces, ""], strict=True))
    return " ".join("".join(LETTERS[letter] for letter in word.split()) for word in code.split(" / "))


@pytest.fixture(scope="session")
def write_text() -> Callable[[int], str]:
    """Make up a text of at least so many bytes: the same one each time, in sentences and paragraphs."""
    return _made_up


def _made_up(size: int) -> str:
    dice = random.Random(1677)
    words = _WORDS.split()
    parts: list[str] = []
    while size > 0:
        sentence = (
            " ".join(dice.choices(words, k=dice.randint(3, 20))).capitalize() + dice.choice(".?!") + dice.choice(" \n")
        )
        parts.append(sentence + "\n" * dice.choice((0, 0, 0, 2)))
        size -= len(parts[-1])
    return "".join(parts)
