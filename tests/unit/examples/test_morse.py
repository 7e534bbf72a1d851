"""The code itself, and morse.encode as a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import LogCapture

from stagewire_examples import MorseEncode
from stagewire_examples.morse import CODE, duration, encode, timeline

if TYPE_CHECKING:
    from tests.unit.examples.conftest import Drive


def symbols(text: str) -> str:
    encoded, skipped = encode(text)
    assert skipped == []
    return encoded


def test_letters_are_those_of_the_recommendation() -> None:
    assert symbols("the quick brown fox jumps over the lazy dog") == (
        "- .... . / --.- ..- .. -.-. -.- / -... .-. --- .-- -. / ..-. --- -..- / .--- ..- -- .--. ... / "
        "--- ...- . .-. / - .... . / .-.. .- --.. -.-- / -.. --- --."
    )
    assert symbols("café É") == "-.-. .- ..-. ..-.. / ..-.."


def test_figures_count_their_dits() -> None:
    expected = ["." * n + "-" * (5 - n) for n in range(1, 6)] + ["-" * n + "." * (5 - n) for n in range(1, 6)]
    assert symbols("1234567890").split() == expected


def test_punctuation_is_that_of_the_recommendation_and_the_common_five() -> None:
    assert symbols(".,:?'-/()\"=+×@") == (
        ".-.-.- --..-- ---... ..--.. .----. -....- -..-. -.--. -.--.- .-..-. -...- .-.-. -..- .--.-."
    )
    assert symbols("!&;_$") == "-.-.-- .-... -.-.-. ..--.- ...-..-"


def test_only_the_multiplication_sign_shares_a_code() -> None:
    shared = {char for char, code in CODE.items() if list(CODE.values()).count(code) > 1}
    assert (len(CODE), shared) == (56, {"X", "×"})


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Ünïcödé Straße Ångström señor", "Unicodé Strasse Angstrom senor"),
        ("cafe\u0301", "café"),
        ("“Yes” ‘no’ «oui»", '"Yes" \'no\' "oui"'),
        ("a – b — c−d…", "a - b - c-d..."),
        ("ＡＢＣ ﬁn", "ABC fin"),
        ("  a\n\n\tb\u00a0c ", "a b c"),
        ("1\ufe0f\u20e3 so\u00adft a\u200db", "1 soft ab"),
    ],
)
def test_what_has_a_plain_form_is_sent_as_that(text: str, plain: str) -> None:
    assert symbols(text) == symbols(plain)


def test_the_rest_is_skipped_and_told() -> None:
    assert encode("a😀b 你 #1 50% ½ \0") == (symbols("ab 1 50"), ["😀", "你", "#", "%", "½", "\0"])
    assert encode("😀 😀") == ("", ["😀", "😀"])


def test_paris_lasts_fifty_dits_with_the_gap_behind_it() -> None:
    assert duration(symbols("paris")) + 7 == 50
    assert duration(symbols("paris paris")) + 7 == 100
    assert duration("") == duration(" / ") == 0


def test_the_timeline_is_made_of_gaps_and_marks() -> None:
    assert list(timeline(" / .- - / . ")) == [(0, 1), (1, 3), (3, 3), (7, 1)]


def test_foreign_symbols_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'x' is no Morse symbol"):
        duration("... x")


def test_each_sentence_becomes_one_text_of_symbols(drive: Drive, logs: LogCapture) -> None:
    assert drive(MorseEncode(), ["SOS now.", "😀", "a"]) == ["... --- ... / -. --- .-- .-.-.-", "", ".-"]
    assert [entry["event"] for entry in logs.entries] == ["morse.skipped"]


def test_one_warning_a_request_counts_what_was_skipped(drive: Drive, logs: LogCapture) -> None:
    drive(MorseEncode(), ["😀😀 a %", "^ b ~", "* # 😀"])
    assert logs.entries == [
        {
            "event": "morse.skipped",
            "log_level": "warning",
            "request_id": "r1",
            "count": 8,
            "examples": ["😀", "%", "^", "~", "*"],
        }
    ]


def test_a_text_that_can_be_sent_whole_warns_of_nothing(drive: Drive, logs: LogCapture) -> None:
    drive(MorseEncode(), ["All fine."])
    assert logs.entries == []
