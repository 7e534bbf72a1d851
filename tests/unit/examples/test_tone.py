"""The sound: exact timing, level, edges, and blocks."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stagewire_examples import MorseTone, ToneOptions
from stagewire_examples.keyer import Keyer, blocks
from stagewire_examples.morse import encode, timeline

if TYPE_CHECKING:
    from tests.unit.examples.conftest import Drive

RATE = 8_000
DIT = 480  # samples: 20 words a minute are 60 ms


def samples(*pieces: bytes) -> array[int]:
    sound = array("h")
    sound.frombytes(b"".join(pieces))
    return sound


def keyed(texts: list[str], *, rate: int = RATE, wpm: float = 20, frequency: float = 600) -> array[int]:
    keyer = Keyer(rate=rate, wpm=wpm, frequency=frequency, level=0.8)
    return samples(*(piece for text in texts for piece in keyer.key(text)))


def runs(sound: array[int], quiet: int) -> Iterator[tuple[bool, int]]:
    """Yield (is it sound, length in samples); silence is ``quiet`` zeros or more, shorter ones belong to the wave."""
    start = last = 0
    for at in (at for at, value in enumerate(sound) if value):
        if at - last > quiet:
            yield True, last + 1 - start
            yield False, at - last - 1
            start = at
        last = at
    yield True, last + 1 - start


def test_a_dit_is_sixty_milliseconds_and_a_dah_three_dits() -> None:
    assert len(keyed(["."])) == DIT
    assert len(keyed(["-"])) == 3 * DIT
    assert len(keyed([".-"])) == 5 * DIT
    assert len(keyed([". -"])) == 7 * DIT
    assert len(keyed([". / -"])) == len(keyed([".", "-"])) == len(keyed([".", "", "-"])) == 11 * DIT


def test_marks_and_gaps_stand_where_they_belong() -> None:
    expected = [1, 1, 3, 3, 1, 7, 3, 7, 1]
    found = [length / DIT for _, length in runs(keyed([".- . / -", "."]), quiet=DIT // 2)]
    assert found == pytest.approx(expected, abs=0.01)


def test_nothing_to_send_is_no_sound() -> None:
    assert len(keyed(["", " / ", ""])) == 0
    assert len(keyed(["", "."])) == DIT


@given(wpm=st.floats(5, 60), rate=st.sampled_from([8_000, 11_025, 44_100]), text=st.lists(st.text(".- /", max_size=8)))
def test_timing_never_drifts_from_the_true_time(wpm: float, rate: int, text: list[str]) -> None:
    pairs = list(timeline(" / ".join(text)))
    ends = list(accumulate(gap + mark for gap, mark in pairs)) or [0]
    assert abs(len(keyed(text, rate=rate, wpm=wpm)) - ends[-1] * 1.2 / wpm * rate) <= 0.5 + 1e-6


def test_rounding_does_not_add_up_over_an_hour() -> None:
    hour = ["-" * 60_000]  # at 33 words a minute a dit is 400.909… samples of 11,025 Hz
    exact = (60_000 * 3 + 59_999) * 1.2 / 33 * 11_025
    assert abs(len(keyed(hour, rate=11_025, wpm=33)) - exact) <= 0.5


def test_how_the_symbols_are_cut_into_sentences_moves_no_sample() -> None:
    symbols, _ = encode("sos help us now")
    assert keyed(symbols.split(" / "), wpm=17.3) == keyed([symbols], wpm=17.3)


@pytest.mark.parametrize("level", [0.5, 0.8, 1.0])
def test_the_peak_is_the_level_and_never_beyond(drive: Drive, level: float) -> None:
    sound = samples(*drive(MorseTone(ToneOptions(level=level)), ["-.-"]))
    assert 0.97 * level * 32_767 <= max(map(abs, sound)) <= math.ceil(level * 32_767)


def test_the_default_is_louder_than_half_of_full_scale(drive: Drive) -> None:
    assert max(map(abs, samples(*drive(MorseTone(ToneOptions()), ["."])))) > 16_384


def test_the_tone_has_its_frequency() -> None:
    sound = keyed(["-"])
    crossings = sum(before < 0 <= after for before, after in pairwise(sound))
    assert crossings == pytest.approx(600 * 0.18, abs=1)


def test_the_edges_are_soft() -> None:
    sound = keyed(["."])
    steepest = max(abs(after - before) for before, after in pairwise(sound))
    first = max(abs(value) for value in sound[:8])
    assert first < 0.15 * max(sound)
    assert max(abs(value) for value in sound[-8:]) < 0.15 * max(sound)
    assert steepest <= max(sound) * 2 * math.pi * 600 / RATE * 1.05


def test_blocks_are_bounded_and_none_is_empty(drive: Drive) -> None:
    stage = MorseTone(ToneOptions(block=256))
    chunks = drive(stage, [encode("a long sentence")[0], "", "."])
    assert all(0 < len(chunk) <= 512 for chunk in chunks)
    assert samples(*chunks) == keyed([encode("a long sentence")[0], "."])
    assert max(map(len, drive(MorseTone(ToneOptions()), ["- " * 500]))) == 65_536


@given(pieces=st.lists(st.binary(max_size=20)), size=st.integers(1, 15))
def test_cutting_anew_loses_nothing(pieces: list[bytes], size: int) -> None:
    cut = list(blocks(pieces, size))
    assert b"".join(cut) == b"".join(pieces)
    assert all(len(block) == size for block in cut[:-1])
    assert all(cut)


def test_symbols_that_are_none_fail_the_request(drive: Drive) -> None:
    with pytest.raises(ValueError, match=r"'H' is no Morse symbol.*morse\.encode"):
        drive(MorseTone(ToneOptions()), ["Hello"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frequency": 3_700}, "needs a rate of 8222 or more"),
        ({"frequency": 20}, "the frequency must be 50 or more"),
        ({"wpm": 0}, "wpm"),
        ({"level": 1.5}, "level"),
        ({"pitch": 600}, "pitch"),
    ],
)
def test_options_that_cannot_be_heard_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ToneOptions.model_validate(options)
