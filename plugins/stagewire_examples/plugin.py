"""The plugin: what ``[project.entry-points."stagewire.plugins"]`` names. It says what there is and builds on demand."""

from __future__ import annotations

from collections.abc import Sequence

from stagewire import Extra, Provider, Stage, hookimpl
from stagewire_examples.encode import MorseEncode
from stagewire_examples.sentences import Sentences, SentencesOptions
from stagewire_examples.speech import Phonemes, Synthesize, SynthesizeOptions, VoiceOptions
from stagewire_examples.table import SentenceTable, WordCount
from stagewire_examples.tone import MorseTone, ToneOptions

SPEECH = Extra("speech", ("espeakng_loader",))
"""What the speech stages need beside stagewire itself."""


@hookimpl
def stagewire_stages() -> Sequence[Provider[Stage]]:
    """Offer the stages that the configurations in ``configs/`` use."""
    return (
        Provider(
            name="text.sentences",
            summary="Splits a UTF-8 text into sentences as it is read.",
            options=SentencesOptions,
            factory=lambda options, _context: Sentences(options),
        ),
        Provider(
            name="text.words",
            summary="Counts the words and characters of each sentence.",
            factory=lambda _options, _context: WordCount(),
            capabilities=frozenset({"idempotent"}),
        ),
        Provider(
            name="text.table",
            summary="Joins text.words and morse.encode into one row for each sentence.",
            factory=lambda _options, _context: SentenceTable(),
        ),
        Provider(
            name="morse.encode",
            summary="Turns sentences into Morse symbols (ITU-R M.1677-1).",
            factory=lambda _options, _context: MorseEncode(),
            capabilities=frozenset({"idempotent"}),
        ),
        Provider(
            name="morse.tone",
            summary="Turns Morse symbols into sound: 16-bit mono PCM.",
            options=ToneOptions,
            factory=lambda options, _context: MorseTone(options),
        ),
        Provider(
            name="speech.phonemes",
            summary="Turns sentences into phonemes, by eSpeak NG.",
            options=VoiceOptions,
            factory=lambda options, _context: Phonemes(options),
            extra=SPEECH,
        ),
        Provider(
            name="speech.synthesize",
            summary="Speaks phonemes or sentences: 16-bit mono PCM, by eSpeak NG.",
            options=SynthesizeOptions,
            factory=lambda options, _context: Synthesize(options),
            extra=SPEECH,
        ),
    )
