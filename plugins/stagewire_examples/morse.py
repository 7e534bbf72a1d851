"""Morse code by ITU-R M.1677-1, as text: ``.`` and ``-``, a space between letters, `` / `` between words."""

# The typographic signs here look like plain ones, and are not: that is what the tables are for.
# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from types import MappingProxyType

_LETTERS = {
    "A": ".-", "B": "-...", "C": "-.-.", "D": "-..", "E": ".", "É": "..-..", "F": "..-.", "G": "--.", "H": "....",
    "I": "..", "J": ".---", "K": "-.-", "L": ".-..", "M": "--", "N": "-.", "O": "---", "P": ".--.", "Q": "--.-",
    "R": ".-.", "S": "...", "T": "-", "U": "..-", "V": "...-", "W": ".--", "X": "-..-", "Y": "-.--", "Z": "--..",
}  # fmt: skip
_FIGURES = {
    "1": ".----", "2": "..---", "3": "...--", "4": "....-", "5": ".....",
    "6": "-....", "7": "--...", "8": "---..", "9": "----.", "0": "-----",
}  # fmt: skip
_PUNCTUATION = {
    ".": ".-.-.-", ",": "--..--", ":": "---...", "?": "..--..", "'": ".----.", "-": "-....-", "/": "-..-.",
    "(": "-.--.", ")": "-.--.-", '"': ".-..-.", "=": "-...-", "+": ".-.-.", "×": "-..-", "@": ".--.-.",
}  # fmt: skip
_COMMON = {"!": "-.-.--", "&": ".-...", ";": "-.-.-.", "_": "..--.-", "$": "...-..-"}

CODE = MappingProxyType(_LETTERS | _FIGURES | _PUNCTUATION | _COMMON)
"""Each character that has a code: the Recommendation's, and five that are in common use beside it."""

ELEMENT_GAP = 1
"""How long the silence between the marks of a letter lasts, in dits."""
GAPS = MappingProxyType({" ": 3, "/": 7})
"""How long the silences between letters and between words last, in dits."""
MARKS = MappingProxyType({".": 1, "-": 3})
"""How long the marks last, in dits."""

_TYPOGRAPHIC = {
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("‘’‚‹›", "'"),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    "…": "...",
}
_INVISIBLE = frozenset({"Mn", "Me", "Cf"})


def encode(text: str) -> tuple[str, list[str]]:
    """Return the symbols for ``text`` and the characters that have no code, in order.

    Accented letters lose their accent (but for É), typographic quotes and dashes become plain ones. Characters that
    cannot be seen (joiners, variation selectors) are dropped and not counted.
    """
    words, skipped = [], []
    for word in unicodedata.normalize("NFC", text).split():
        letters = []
        for character in word:
            code = _code(character)
            if code is None:
                skipped.append(character)
            elif code:
                letters.append(code)
        if letters:
            words.append(" ".join(letters))
    return " / ".join(words), skipped


def timeline(symbols: str) -> Iterator[tuple[int, int]]:
    """Yield every mark as (the silence before it, its own length), in dits; nothing comes before the first.

    Raises:
        ValueError: There is something else in ``symbols`` than ``.``, ``-``, ``/`` and spaces.
    """
    gap = 0
    for symbol in symbols:
        if symbol in MARKS:
            yield gap, MARKS[symbol]
            gap = ELEMENT_GAP
        elif symbol in GAPS:
            gap = max(gap, GAPS[symbol]) if gap else 0
        else:
            raise ValueError(f"{symbol!r} is no Morse symbol: give '.', '-', '/' and spaces, as morse.encode yields")


def duration(symbols: str) -> int:
    """Return how many dits ``symbols`` last, first mark to last. Raises `ValueError` as `timeline` does."""
    return sum(gap + mark for gap, mark in timeline(symbols))


@lru_cache(maxsize=4096)
def _code(character: str) -> str | None:
    """Return the code of one character, of several letters where it stands for several; "" when it is invisible."""
    if unicodedata.category(character) in _INVISIBLE:
        return ""
    for plain in (character.upper(), _TYPOGRAPHIC.get(character), _base_letters(character)):
        if plain and all(each in CODE for each in plain):
            return " ".join(CODE[each] for each in plain)
    return None


def _base_letters(character: str) -> str:
    """Return a letter without its accents, in upper case; "" when it is no letter."""
    if not character.isalpha():
        return ""
    parts = unicodedata.normalize("NFKD", character)
    return "".join(part for part in parts if not unicodedata.combining(part)).upper()
