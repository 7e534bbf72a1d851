"""``morse.encode``: sentences to Morse symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from stagewire import Event, StageRequest, emit
from stagewire_examples.base import QuietStage, text_of
from stagewire_examples.morse import encode

SKIPPED = Event(
    "morse.skipped",
    "warning",
    frozenset({"count", "examples"}),
    "Characters without a Morse code were left out of a text.",
)
"""Once for each request that had such characters: how many, and up to five of them."""

_EXAMPLES = 5


class MorseEncode(QuietStage):
    """Takes sentences and yields one text of Morse symbols for each, ``... --- ... / .``, empty when nothing is left.

    What has no code is skipped, and told of by one `SKIPPED` event when the request ends.
    """

    async def process(self, request: StageRequest) -> AsyncIterator[str]:
        """Yield the symbols of each sentence."""
        skipped: Counter[str] = Counter()
        async for sentence in request.chunks:
            symbols, left_out = encode(text_of(sentence))
            skipped.update(left_out)
            yield symbols
        if skipped:
            examples = [character for character, _ in skipped.most_common(_EXAMPLES)]
            emit(self.log, SKIPPED, request_id=request.id, count=skipped.total(), examples=examples)
