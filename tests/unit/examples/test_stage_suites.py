"""The example stages keep the contract of a stage."""

from __future__ import annotations

import importlib.util
import os
from typing import ClassVar

import pytest

from stagewire import Stage
from stagewire.testing import StageSample, StageSuite
from stagewire_examples import (
    MorseEncode,
    MorseTone,
    Phonemes,
    Sentences,
    SentencesOptions,
    SentenceTable,
    Synthesize,
    SynthesizeOptions,
    ToneOptions,
    VoiceOptions,
    WordCount,
)

speech = pytest.mark.skipif(
    importlib.util.find_spec("espeakng_loader") is None and os.environ.get("CI") != "true",
    reason="needs eSpeak NG: pip install 'stagewire[speech]'",
)


class TestSentences(StageSuite):
    samples = (
        StageSample(chunks=(b"One. Tw", b"o.\n\nThree", b"! Four"), outputs=("One.", "Two.", "Three!", "Four")),
        StageSample(chunks=("A text", " as str."), outputs=("A text as str.",)),
    )
    streams: ClassVar[bool] = False  # the last sample is one sentence, which ends where the text does

    def make_stage(self) -> Stage:
        return Sentences(SentencesOptions())


class TestSentencesStream(StageSuite):
    samples = (StageSample(chunks=(b"One. ", b"Two. ", b"Three.")),)

    def make_stage(self) -> Stage:
        return Sentences(SentencesOptions())


class TestMorseEncode(StageSuite):
    samples = (StageSample(chunks=("Sos", "🎉", "a b"), outputs=("... --- ...", "", ".- / -...")),)

    def make_stage(self) -> Stage:
        return MorseEncode()


class TestMorseTone(StageSuite):
    samples = (StageSample(chunks=("... --- ...", ".", "- / -")),)

    def make_stage(self) -> Stage:
        return MorseTone(ToneOptions(block=1_000))


class TestWordCount(StageSuite):
    samples = (
        StageSample(
            chunks=("One two.", "Three"), outputs=({"words": 2, "characters": 8}, {"words": 1, "characters": 5})
        ),
    )

    def make_stage(self) -> Stage:
        return WordCount()


class TestSentenceTable(StageSuite):
    samples = (
        StageSample(
            chunks=(({"words": 2}, ".-"), ({"words": 1}, ".")),
            outputs=({"sentence": 1, "words": 2, "dits": 5}, {"sentence": 2, "words": 1, "dits": 1}),
        ),
    )

    def make_stage(self) -> Stage:
        return SentenceTable()


@speech
class TestPhonemes(StageSuite):
    samples = (StageSample(chunks=("Hello.", "World?"), outputs=("[[h@l'oU]].", "[[w'3:ld]]?")),)

    def make_stage(self) -> Stage:
        return Phonemes(VoiceOptions())


@speech
class TestSynthesize(StageSuite):
    samples = (StageSample(chunks=("[[h@l'oU]].", "[[w'3:ld]]?")),)
    deterministic: ClassVar[bool] = False  # eSpeak NG keeps the phase of its wave from one sentence to the next

    def make_stage(self) -> Stage:
        return Synthesize(SynthesizeOptions())
