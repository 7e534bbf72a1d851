"""The msgpack extension types of a payload. Codes are part of the wire format: never reuse one.

The content of a buffer or an array is its bytes, or the number of an out-of-band buffer.
"""

from __future__ import annotations

from enum import IntEnum

MAX_DEPTH = 100
"""How deep containers may nest, on both ways."""

OUT_OF_BAND = 16 * 1024
"""From this many bytes on a buffer travels beside the body instead of in it, and is not copied."""


class Ext(IntEnum):
    """What an extension holds, msgpack inside: a content, ``[dtype, shape, content]``, or an ISO 8601 text."""

    BYTES = 1
    BYTEARRAY = 2
    MEMORYVIEW = 3
    ARRAY = 4
    NAIVE_DATETIME = 5


Content = int | bytes
