"""The branch that counts and the join."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stagewire_examples import SentenceTable, WordCount

if TYPE_CHECKING:
    from tests.unit.examples.conftest import Drive


def test_words_and_characters_are_counted(drive: Drive) -> None:
    assert drive(WordCount(), ["Hello there, you.", "Oui."]) == [
        {"words": 3, "characters": 17},
        {"words": 1, "characters": 4},
    ]


def test_two_branches_become_numbered_rows(drive: Drive) -> None:
    pairs = [({"words": 1, "characters": 5}, ".--. .- .-. .. ..."), ({"words": 0, "characters": 1}, "")]
    assert drive(SentenceTable(), pairs) == [
        {"sentence": 1, "words": 1, "characters": 5, "dits": 43},
        {"sentence": 2, "words": 0, "characters": 1, "dits": 0},
    ]


@pytest.mark.parametrize("chunk", ["...", {"words": 1}, ("...", {"words": 1}), ({"words": 1}, "...", 3), ({}, b"...")])
def test_other_edges_are_refused_with_the_remedy(drive: Drive, chunk: Any) -> None:
    with pytest.raises(TypeError, match="text\\.words and morse\\.encode: give it `join: zip`"):
        drive(SentenceTable(), [chunk])
