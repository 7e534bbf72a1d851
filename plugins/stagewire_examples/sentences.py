"""``text.sentences``: a text, sentence by sentence, as it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic import Field

from stagewire import Options, StageRequest
from stagewire_examples.base import QuietStage
from stagewire_examples.splitter import ABBREVIATIONS, MAX_LENGTH, SentenceSplitter
from stagewire_examples.utf8 import Errors, TextReader


class SentencesOptions(Options):
    """Options of ``text.sentences``."""

    errors: Errors = Field("strict", description="bytes that are not UTF-8: fail the request, or replace by U+FFFD")
    max_length: int = Field(MAX_LENGTH, ge=1, le=1_000_000, description="characters; longer sentences are cut")
    abbreviations: tuple[str, ...] = Field(
        ABBREVIATIONS, description="words whose full stop ends no sentence, instead of the built-in list"
    )


class Sentences(QuietStage):
    """Takes a UTF-8 text in blocks of bytes (or str) and yields its sentences as str, none of them empty.

    Memory is bounded by one block and one sentence. Raises `InvalidText` when the bytes are not UTF-8.
    """

    def __init__(self, options: SentencesOptions) -> None:
        self._options = options

    async def process(self, request: StageRequest) -> AsyncIterator[str]:
        """Yield each sentence once the input shows that it has ended."""
        options = self._options
        reader = TextReader(options.errors)
        splitter = SentenceSplitter(options.max_length, options.abbreviations)
        async for block in request.chunks:
            for sentence in splitter.feed(reader.read(block)):
                yield sentence
        for sentence in splitter.feed(reader.finish()):
            yield sentence
        for sentence in splitter.finish():
            yield sentence
