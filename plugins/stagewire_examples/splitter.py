"""Splits running text into sentences while it is being read.

Works word by word, so what it holds is bounded by the longest sentence it may make, and where the blocks of the input
are cut makes no difference to what comes out. The rules are those of a careful typist, not of a grammarian:

- a blank line ends a sentence, a single line end is only a space;
- ``. ! ? …`` (and their Arabic, Indic and Ethiopic sisters) end one before a space, with any closing quotes;
- ``。！？`` end one wherever they stand;
- a stop before a closing quote, and dots of omission, end one unless a lower-case word follows on the same line;
- abbreviations, initials, and the number before a list's item end none; decimals have no space after the point.
"""

# Quotes and stops of many scripts are what this module is about; some of them look like others.
# ruff: noqa: RUF001, RUF002

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import Enum, auto

ABBREVIATIONS = (
    "al", "approx", "bzw", "ca", "capt", "cf", "co", "col", "dept", "dr", "ed", "eds", "est", "etc", "fig", "figs",
    "gen", "gov", "hon", "inc", "jr", "lt", "ltd", "messrs", "mme", "mr", "mrs", "ms", "mt", "nr", "pp", "prof",
    "resp", "rev", "sen", "sgt", "sr", "st", "usw", "viz", "vol", "vs",
)  # fmt: skip
"""Words that carry a full stop inside a sentence, in lower case. Those like ``e.g.`` and ``U.S.`` need no mention."""

MAX_LENGTH = 2_000
"""Characters; a longer sentence is cut between two words."""

_OPENING = "\"'“‘„«‹([{「『（【《"
_CLOSING = "\"'”’»›)]}」』）】》"
_STOPS = ".!?…؟۔।॥።"
_TOKEN = re.compile(r"\s+|\S+")
_DENSE_END = re.compile(rf"[。！？｡]+[{re.escape(_CLOSING)}]*")
_ABBREVIATION_LIKE = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_PARAGRAPH = "\u2029"


class _Verdict(Enum):
    """Whether a sentence ends behind a word."""

    GOES_ON = auto()
    ENDS = auto()
    ENDS_UNLESS_LOWER = auto()


class SentenceSplitter:
    """Takes text piece by piece and yields sentences: their words in order, one space between two.

    For one text, from one caller; each iterator is used up before the next call. ``max_length`` is in characters; a
    word longer than that is cut as well.
    """

    def __init__(self, max_length: int = MAX_LENGTH, abbreviations: Collection[str] = ABBREVIATIONS) -> None:
        self._max = max_length
        self._abbreviations = frozenset(word.lower().rstrip(".") for word in abbreviations)
        self._partial = ""
        self._words: list[str] = []
        self._length = 0
        self._line_ends = 0
        self._undecided = False

    def feed(self, text: str) -> Iterator[str]:
        """Yield the sentences that ``text`` completes."""
        text = self._partial + text
        self._partial = ""
        for token in _TOKEN.finditer(text):
            piece = token.group()
            if piece.isspace():
                yield from self._gap(piece)
            elif token.end() == len(text):
                yield from self._word(piece, complete=False)
            else:
                yield from self._word(piece, complete=True)

    def finish(self) -> Iterator[str]:
        """Yield what is left at the end of the text."""
        last, self._partial = self._partial, ""
        if last:
            yield from self._word(last, complete=True)
        yield from self._flush()

    def _gap(self, space: str) -> Iterator[str]:
        self._line_ends += space.count("\n") + 2 * space.count(_PARAGRAPH)
        if self._line_ends > 1 or (self._line_ends and self._undecided):
            yield from self._flush()

    def _word(self, word: str, *, complete: bool) -> Iterator[str]:
        """Take in a word. One that the next text may continue is kept back, but for what is certain already."""
        while end := self._certain_end(word, complete=complete):
            yield from self._add(word[:end])
            yield from self._flush()
            word = word[end:]
        if not complete:
            self._partial = word
        elif word:
            yield from self._add(word)
            yield from self._judge(word)

    def _certain_end(self, word: str, *, complete: bool) -> int:
        """Return where a sentence ends inside ``word``, however it may go on; 0 when nowhere."""
        match = _DENSE_END.search(word)
        if match and match.end() <= self._max and (complete or match.end() < len(word)):
            return match.end()
        return self._max if len(word) > self._max else 0

    def _add(self, word: str) -> Iterator[str]:
        if (self._undecided and not _continues(word)) or self._length + 1 + len(word) > self._max:
            yield from self._flush()
        self._words.append(word)
        self._length += len(word) + (len(self._words) > 1)
        self._line_ends = 0
        self._undecided = self._undecided and not word[0].islower()

    def _judge(self, word: str) -> Iterator[str]:
        verdict = self._verdict(word)
        self._undecided = self._undecided or verdict is _Verdict.ENDS_UNLESS_LOWER
        if verdict is _Verdict.ENDS:
            yield from self._flush()

    def _verdict(self, word: str) -> _Verdict:
        bare = word.rstrip(_CLOSING)
        head = bare.rstrip(_STOPS)
        stop = bare[len(head) :]
        if not stop:
            return _Verdict.GOES_ON
        if bare != word or not head or (stop != "." and not stop.strip(".…")):
            return _Verdict.ENDS_UNLESS_LOWER
        if stop == "." and self._carries_a_stop(head):
            return _Verdict.GOES_ON
        return _Verdict.ENDS

    def _carries_a_stop(self, head: str) -> bool:
        bare = head.lstrip(_OPENING)
        if len(self._words) == 1 and bare.isdigit():
            return True
        initial = len(bare) == 1 and bare.isupper()
        return initial or bare.lower() in self._abbreviations or bool(_ABBREVIATION_LIKE.fullmatch(bare))

    def _flush(self) -> Iterator[str]:
        words, self._words = self._words, []
        self._length = 0
        self._line_ends = 0
        self._undecided = False
        if words:
            yield " ".join(words)


def _continues(word: str) -> bool:
    """Whether a word, by its looks, goes on with a sentence that may have ended: lower case, or a stray stop."""
    return word[0].islower() or not word.strip(_STOPS + _CLOSING)
