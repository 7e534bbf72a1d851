"""``text.words`` and ``text.table``: a branch that counts, and the join of two branches into rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from stagewire import StageRequest
from stagewire_examples.base import QuietStage, text_of
from stagewire_examples.morse import duration

_BRANCHES = 2


class WordCount(QuietStage):
    """Takes sentences and yields ``{"words": …, "characters": …}`` for each."""

    async def process(self, request: StageRequest) -> AsyncIterator[dict[str, int]]:
        """Yield the counts of each sentence."""
        async for chunk in request.chunks:
            sentence = text_of(chunk)
            yield {"words": len(sentence.split()), "characters": len(sentence)}


class SentenceTable(QuietStage):
    """Joins counts and Morse symbols, zipped by chunk, and yields one row for each sentence.

    A row is ``{"sentence": 1, "words": …, "characters": …, "dits": …}``; ``dits`` is how long its Morse code lasts.
    """

    async def process(self, request: StageRequest) -> AsyncIterator[dict[str, Any]]:
        """Yield the row of each pair. Raises `TypeError` when the edges are not what this stage joins."""
        number = 0
        async for pair in request.chunks:
            number += 1
            counts, symbols = _pair(pair)
            yield {"sentence": number, **counts, "dits": duration(symbols)}


def _pair(chunk: object) -> tuple[dict[str, int], str]:
    if isinstance(chunk, tuple | list) and len(chunk) == _BRANCHES:
        counts, symbols = chunk
        if isinstance(counts, dict) and isinstance(symbols, str):
            return counts, symbols
    raise TypeError(
        "text.table joins what two stages yield, text.words and morse.encode: "
        "give it `join: zip` and edges from both, in this order"
    )
