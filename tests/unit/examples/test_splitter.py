"""Where sentences end, and that nothing of a text is lost on the way."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire_examples import SentenceSplitter


def split(*blocks: str, max_length: int = 2_000) -> list[str]:
    splitter = SentenceSplitter(max_length)
    return [sentence for block in blocks for sentence in splitter.feed(block)] + list(splitter.finish())


@pytest.mark.parametrize(
    "sentences",
    [
        ["One.", "Two!", "Three?", "Four…", "Five"],
        ["one. ", "two. ", "three."],
        ["Mr. Smith met Dr. Jones, Ph.D., at 5 p.m. on St. James St. near pp. 10.", "They spoke, e.g. of U.S. trade."],
        ["J. R. R. Tolkien wrote it.", "It costs 3.14 or $1,000.50 vs. 2.71.", "See www.example.com."],
        ["He said “Go.”", "Then he left.", "(It was late.)", "'Why?'", "«Oui.»", "Non."],
        ['"Stop!" he said.', '"Why?" she asked (loudly!) and left.', "Well... maybe.", "Wait… what?!", "What?!"],
        ["Bonjour !", "« Ça va ? »", "« Oui ! » dit-il.", "Non."],
        ["1. Buy milk.", "2. Drink it.", "It was 1990.", "Then came 1991."],
        ["z.B. so usw. und bzw. anders.", "Ende."],
        ["Ελλάδα.", "Россия!", "نعم؟", "हाँ।", "ሰላም።", "Եհ."],
        ["Version 1.2.3 of it.", "I am.", "So do we."],
    ],
)
def test_sentence_ends(sentences: list[str]) -> None:
    assert split(" ".join(sentences)) == [sentence.strip() for sentence in sentences]


def test_full_width_stops_need_no_space() -> None:
    assert split("你好。他说：「是！」好吗？好……行") == ["你好。", "他说：「是！」", "好吗？", "好……行"]
    assert split("「好。", "」行", "。") == ["「好。」", "行。"]


def test_a_blank_line_ends_a_sentence_and_a_line_end_does_not() -> None:
    assert split("A TITLE\n \t\nIt goes\non and\non.\n\n\n\nEnd\u2029Last") == [
        "A TITLE", "It goes on and on.", "End", "Last",
    ]  # fmt: skip


def test_a_line_end_decides_what_a_lower_case_word_would_continue() -> None:
    assert split('"Stop!"\nhe said') == ['"Stop!"', "he said"]


def test_a_sentence_comes_out_as_soon_as_its_end_is_seen() -> None:
    splitter = SentenceSplitter()
    assert list(splitter.feed("Hello there.")) == []
    assert list(splitter.feed("\n")) == ["Hello there."]
    assert list(splitter.feed("“Yes.”")) == []
    assert list(splitter.feed("\n")) == ["“Yes.”"]
    assert list(splitter.feed("你好。再")) == ["你好。"]


@pytest.mark.parametrize("nothing", ["", " ", "\n\n\r\t ", "\u2029"])
def test_no_words_are_no_sentence(nothing: str) -> None:
    assert split(nothing) == []


TEXTS = st.text(st.sampled_from("aB1 .!?…\n\t。！”\")'«e.g.Mr.\u2029\u00a0"), max_size=80)


@given(text=TEXTS, size=st.integers(1, 10), max_length=st.integers(1, 40))
def test_the_cuts_of_the_input_make_no_difference(text: str, size: int, max_length: int) -> None:
    blocks = [text[at : at + size] for at in range(0, len(text), size)]
    assert split(*blocks, max_length=max_length) == split(text, max_length=max_length)


@given(text=TEXTS | st.text(max_size=80), max_length=st.integers(1, 40))
def test_every_character_comes_through_in_order_and_within_the_limit(text: str, max_length: int) -> None:
    sentences = split(text, max_length=max_length)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(0 < len(sentence) <= max_length for sentence in sentences)


@given(words=st.lists(st.text("abcé.?", min_size=1, max_size=8)), max_length=st.integers(8, 30))
def test_words_shorter_than_the_limit_stay_whole(words: list[str], max_length: int) -> None:
    assert " ".join(split(" ".join(words), max_length=max_length)).split() == words


def test_a_long_sentence_is_cut_between_words_and_a_long_word_inside() -> None:
    assert split("aa bb cc dd", max_length=5) == ["aa bb", "cc dd"]
    assert split("a bbbbbbbb c", max_length=3) == ["a", "bbb", "bbb", "bb", "c"]


@pytest.mark.parametrize("block", ["word ", "x", "\n", " ", "。", "!", "Mr. "])
def test_memory_is_bounded_by_the_longest_sentence(block: str) -> None:
    splitter = SentenceSplitter(max_length=100)
    blocks: Iterable[str] = (block * 1_000 for _ in range(40))
    tracemalloc.start()
    try:
        for text in blocks:
            for _ in splitter.feed(text):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40_000
