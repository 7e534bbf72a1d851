"""Keys a sine: from Morse symbols to 16-bit mono PCM, exact to the sample over any length."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Iterator
from fractions import Fraction

from stagewire_examples.morse import GAPS, timeline

SAMPLE_BYTES = 2
"""A sample is a signed 16-bit number, low byte first, as in a WAV file."""

_FULL_SCALE = 32_767
_EDGE_SECONDS = 0.005
_PARIS_DIT = Fraction(12, 10)
"""Seconds of a dit at one word a minute: the word PARIS with the gap behind it lasts 50 dits."""


def dit_seconds(wpm: float) -> Fraction:
    """Return how long a dit lasts at ``wpm`` words a minute, in seconds."""
    return _PARIS_DIT / Fraction(str(wpm))


class Keyer:
    """Turns texts of symbols into pieces of sound, a word gap between two texts. For one request.

    Marks and gaps start and end at the sample nearest to their true time, counted from the first mark, so rounding
    never adds up. Each mark begins at phase 0 behind a raised-cosine edge: all dits are the same bytes, made once.
    """

    def __init__(self, *, rate: int, wpm: float, frequency: float, level: float) -> None:
        self._rate = rate
        self._step = 2 * math.pi * frequency / rate
        self._amplitude = level * _FULL_SCALE
        dit = dit_seconds(wpm) * rate
        self._numerator, self._denominator = dit.numerator, dit.denominator
        self._edge = max(1, min(round(_EDGE_SECONDS * rate), int(dit) // 4))
        self._dits = 0
        self._silences: dict[int, bytes] = {}
        self._marks: dict[int, bytes] = {}

    def key(self, symbols: str) -> Iterator[bytes]:
        """Yield the sound of ``symbols``, mark by mark. Raises `ValueError` when they are not Morse symbols."""
        before_first = GAPS["/"] if self._dits else 0
        for gap, mark in timeline(symbols):
            if gap or before_first:
                yield self._silence(self._advance(gap or before_first))
                before_first = 0
            yield self._mark(self._advance(mark))

    def _advance(self, dits: int) -> int:
        """Move on by ``dits`` and return how many samples that is from here."""
        start = self._sample()
        self._dits += dits
        return self._sample() - start

    def _sample(self) -> int:
        return (2 * self._dits * self._numerator + self._denominator) // (2 * self._denominator)

    def _silence(self, samples: int) -> bytes:
        if samples not in self._silences:
            self._silences[samples] = bytes(samples * SAMPLE_BYTES)
        return self._silences[samples]

    def _mark(self, samples: int) -> bytes:
        if samples not in self._marks:
            self._marks[samples] = self._wave(samples)
        return self._marks[samples]

    def _wave(self, samples: int) -> bytes:
        wave = array("h", (self._value(at, samples) for at in range(samples)))
        if sys.byteorder == "big":
            wave.byteswap()
        return wave.tobytes()

    def _value(self, at: int, samples: int) -> int:
        into_edge = min(at + 1, samples - at) / (self._edge + 1)
        envelope = 0.5 - 0.5 * math.cos(math.pi * min(1.0, into_edge))
        return round(self._amplitude * envelope * math.sin(self._step * at))


def blocks(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Join pieces and cut them anew into blocks of ``size`` bytes; the last one may be shorter, none is empty."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        while len(buffer) >= size:
            yield bytes(buffer[:size])
            del buffer[:size]
    if buffer:
        yield bytes(buffer)
