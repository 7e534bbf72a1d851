"""Reading UTF-8 in blocks that are cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagewire_examples import InvalidText, TextReader


def read(reader: TextReader, *blocks: bytes | bytearray | memoryview | str) -> str:
    return "".join(reader.read(block) for block in blocks) + reader.finish()


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\r\ufeff")), size=st.integers(1, 5))
def test_text_arrives_whole_wherever_the_blocks_are_cut(text: str, size: int) -> None:
    data = text.encode()
    assert read(TextReader(), *(data[at : at + size] for at in range(0, len(data), size))) == text


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_byte_order_mark_and_carriage_returns_vanish(size: int) -> None:
    data = "\ufeffone\r\ntwo\rthree\n\ufeff".encode()
    assert read(TextReader(), *(data[at : at + size] for at in range(0, len(data), size))) == "one\ntwo\nthree\n\ufeff"


def test_every_kind_of_block_is_taken() -> None:
    assert read(TextReader(), "a\r", "\nb", b"c", bytearray(b"d"), memoryview(b"e")) == "a\nbcde"


def test_anything_else_than_text_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="not of int"):
        TextReader().read(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"\xef\xbb\xbfabc\xff def", 6),
        (b"caf\xe9 au lait", 3),
        ("naïve ".encode() + b"\xe2\x82", 7),  # ends inside a character
        (b"\xff\xfea\x00b\x00", 0),  # UTF-16
        (b"ok " * 50 + b"\xc0\xaf", 150),
    ],
)
def test_the_error_names_the_first_wrong_byte_and_the_remedies(data: bytes, offset: int, size: int) -> None:
    with pytest.raises(InvalidText, match=f"at byte {offset}\\. .*iconv.*errors: replace") as caught:
        read(TextReader(), *(data[at : at + size] for at in range(0, len(data), size)))
    assert caught.value.offset == offset


def test_wrong_bytes_are_replaced_on_request() -> None:
    assert read(TextReader("replace"), b"caf\xe9 ", b"au lait \xe2") == "caf\ufffd au lait \ufffd"
