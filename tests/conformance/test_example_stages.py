"""The example stages keep the contract of every stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stagewire import Stage
from stagewire.testing import StageSample, StageSuite
from stagewire_examples.plugin import stagewire_stages


def make(name: str) -> Stage:
    """Build a stage as an App does, from its provider's defaults."""
    provider = next(provider for provider in stagewire_stages() if provider.name == name)
    return provider.factory(provider.options(), None)  # type: ignore[arg-type] # these take nothing of the context


class TestSentences(StageSuite):
    samples: ClassVar[Sequence[StageSample]] = (
        StageSample(chunks=(b"One. Two! ", b"Thr", b"ee?\n\nFour"), outputs=("One.", "Two!", "Three?", "Four")),
        StageSample(chunks=(), outputs=()),
    )

    def make_stage(self) -> Stage:
        return make("text.sentences")


class TestMorseEncode(StageSuite):
    samples: ClassVar[Sequence[StageSample]] = (StageSample(chunks=("SOS SOS.", "E", "T")), StageSample())

    def make_stage(self) -> Stage:
        return make("morse.encode")


class TestMorseTone(StageSuite):
    samples: ClassVar[Sequence[StageSample]] = (StageSample(chunks=("... --- ...", ".", "-")), StageSample())

    def make_stage(self) -> Stage:
        return make("morse.tone")
