"""UTF-8 read block by block, wherever the blocks happen to be cut."""

from __future__ import annotations

import codecs
import io
from typing import Literal

from stagewire import StagewireError

Errors = Literal["strict", "replace"]
"""What to do with bytes that are not UTF-8: fail, or put U+FFFD in their place."""

_BOM = "\ufeff"


class InvalidText(StagewireError):
    """The input is not UTF-8.

    Attributes:
        offset: Where the first wrong byte stands, counted from 0.
    """

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        super().__init__(
            f"the text is not UTF-8: {reason} at byte {offset}. Convert it (iconv -f LATIN1 -t UTF-8 …), "
            "or set `errors: replace` on this stage to read on with U+FFFD in place of what is wrong"
        )


class TextReader:
    """Turns blocks of bytes, or of text, into text, without a leading byte order mark, every line end a line feed.

    It holds at most a few bytes back. For one text, from one caller.
    """

    def __init__(self, errors: Errors = "strict") -> None:
        self._bytes = codecs.getincrementaldecoder("utf-8")(errors)
        self._newlines = io.IncrementalNewlineDecoder(None, translate=True)
        self._taken = 0
        self._at_start = True

    def read(self, block: bytes | bytearray | memoryview | str) -> str:
        """Return the text that ``block`` completes. Raises `InvalidText`, or `TypeError` for any other block."""
        if isinstance(block, str):
            return self._tidy(block)
        if not isinstance(block, bytes | bytearray | memoryview):
            raise TypeError(f"a text is made of bytes or str, not of {type(block).__name__}")
        return self._tidy(self._decode(bytes(block)))

    def finish(self) -> str:
        """Return what is left at the end of the text. Raises `InvalidText` when it ends inside a character."""
        return self._tidy(self._decode(b"", final=True), final=True)

    def _decode(self, block: bytes, *, final: bool = False) -> str:
        waiting = len(self._bytes.getstate()[0])
        try:
            text = self._bytes.decode(block, final)
        except UnicodeDecodeError as error:
            raise InvalidText(self._taken - waiting + error.start, error.reason) from error
        self._taken += len(block)
        return text

    def _tidy(self, text: str, *, final: bool = False) -> str:
        if self._at_start and text:
            text = text.removeprefix(_BOM)
            self._at_start = False
        return self._newlines.decode(text, final)
