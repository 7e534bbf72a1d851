"""text.sentences as a stage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from stagewire import StageContext, StageRequest
from stagewire_examples import InvalidText, Sentences, SentencesOptions

if TYPE_CHECKING:
    from tests.unit.examples.conftest import Drive


def test_blocks_of_bytes_become_sentences(drive: Drive) -> None:
    stage = Sentences(SentencesOptions())
    assert drive(stage, [b"\xef\xbb\xbfIt is caf", b"\xc3", b"\xa9.\r", b"\nYes!\r\n\r\nEnd"]) == [
        "It is café.",
        "Yes!",
        "End",
    ]


def test_a_prompt_of_text_is_taken_as_well(drive: Drive) -> None:
    assert drive(Sentences(SentencesOptions()), ["hi there"]) == ["hi there"]


@pytest.mark.parametrize("blocks", [[], [b""], [b" \n"], ["\ufeff"]])
def test_an_empty_input_yields_nothing(drive: Drive, blocks: list[bytes]) -> None:
    assert drive(Sentences(SentencesOptions()), blocks) == []


def test_bytes_that_are_not_utf8_fail_the_request_with_their_place(drive: Drive) -> None:
    with pytest.raises(InvalidText, match="at byte 7"):
        drive(Sentences(SentencesOptions()), [b"Hello. ", b"\xff"])
    assert drive(Sentences(SentencesOptions(errors="replace")), [b"Hello. ", b"\xff"]) == ["Hello.", "\ufffd"]


def test_the_options_reach_the_splitter(drive: Drive) -> None:
    options = SentencesOptions(max_length=6, abbreviations=("Abb.",))
    assert drive(Sentences(options), [b"Mr. A1 abb. c d e f"]) == ["Mr.", "A1", "abb. c", "d e f"]
    with pytest.raises(ValidationError, match="max_length"):
        SentencesOptions(max_length=0)


def test_a_sentence_is_yielded_before_the_next_block_is_asked_for(context: StageContext) -> None:
    asked: list[int] = []

    async def blocks() -> AsyncIterator[bytes]:
        for number in range(3):
            asked.append(number)
            yield b"Sentence one. Sentence"

    async def first() -> str:
        stage = Sentences(SentencesOptions())
        await stage.open(context)
        async for sentence in stage.process(StageRequest("r1", chunks=blocks())):
            return sentence
        raise AssertionError

    assert asyncio.run(first()) == "Sentence one."
    assert asked == [0]
